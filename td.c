tensor([0., 1.]) torch.Size([3]) tensor([2., 2., 2.]) torch.Size([2, 3]) torch.Size([6, 2]) torch.float64 torch.Size([3, 1]) tensor([2., 3.])
tensor([[ 0.,  2.],
        [ 4.,  6.],
        [ 8., 10.]]) TensorDict(batch_size=[], fields={a: f32[], b: {c: f32[]}}) 2 _StringKeys(dict_keys(['a'])) _StringKeys(dict_keys(['b'])) _StringKeys(dict_keys(['a', 'b.c']))
0.673515260219574 0.10202083736658096
torch.Size([2, 2]) torch.Size([2, 4])
4
torch.Size([3, 1])
tensor([[ 0.,  2.],
        [ 4.,  6.],
        [ 8., 10.]])
tensor([1., 5., 9.])
tensor([0.5818, 0.8546, 0.8362, 1.5155, 1.6553, 1.5592])
TensorDict(batch_size=[], fields={s: f32[3]})
tensor(15.)
MemoryMappedTensor([1., 1., 1.])
torch.Size([2, 3, 2]) tensor(3.)
tensor([ 2., 10., 18.])
2
TensorDict(batch_size=[3], fields={a: f32[2], b: {c: f32[]}})

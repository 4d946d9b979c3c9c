"""Every op on tensors of a GPU that is not the current one: results and gradients are there, and equal the CPU's."""

import pytest
from ops.calls import SAMPLES, Call, on_gpu, uploaded

import cygrad
from cygrad._core.graph.internals import tensor_of


@pytest.fixture
def there(cupy, second):
    """Runs samples on the second GPU, while the first one stays the current one."""
    own = on_gpu(cupy)

    class OnSecond(own):
        @staticmethod
        def tensor(array):
            with cygrad.cuda.device(second):
                return tensor_of(uploaded(cupy, array))

        @staticmethod
        def tensor_within(block, start, array):
            with cygrad.cuda.device(second):
                return own.tensor_within(block, start, array)

    return OnSecond


def tensors(values):
    return [value for value in values if isinstance(value, cygrad.Tensor)]


@pytest.mark.parametrize("name", SAMPLES)
def test_results_and_gradients_are_on_the_second_gpu(name, there, second):
    for i, sample in enumerate(SAMPLES[name]):
        call = Call(name, sample, on=there)
        results = call.run()
        if name == "cpu" or not call.takes_tensors:
            continue
        assert {str(value.device) for value in tensors(results)} <= {second}, f"sample {i}"
        outs = [value for value in tensors(results) if value.requires_grad]
        if outs and sample.unique:
            weights = [weight.to(out.device) for weight, out in zip(call.weights(outs), outs, strict=True)]
            gradients = tensors(call.gradients(weights, outs))
            assert {str(value.device) for value in gradients} <= {second}, f"gradients of sample {i}"
    assert cygrad.cuda.current_device() == 0

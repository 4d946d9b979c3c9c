// CuPy's array and index classes in element-wise and reduction kernels, with checked bounds.
#pragma once

namespace cuda_on_cpu {

struct Layout {
  void* data;
  int64_t ndim, size;
  const int64_t *shape, *strides;  // in bytes
};

inline void out_of_bounds(int64_t i, int64_t size) {
  fail("index " + std::to_string(i) + " of an array of " + std::to_string(size) + " elements");
}

}  // namespace cuda_on_cpu

template <typename T>
struct CArray {
  cuda_on_cpu::Layout layout;
  int ndim;
  CArray(const cuda_on_cpu::Layout& l) : layout(l), ndim((int)l.ndim) {}
  int64_t size() const { return layout.size; }
  const int64_t* shape() const { return layout.shape; }
  const int64_t* strides() const { return layout.strides; }
  T& operator[](int64_t i) const {
    if (i < 0 || i >= layout.size) cuda_on_cpu::out_of_bounds(i, layout.size);
    int64_t offset = 0;
    for (int axis = ndim - 1; axis >= 0; axis--) {
      offset += i % layout.shape[axis] * layout.strides[axis];
      i /= layout.shape[axis];
    }
    return *(T*)((char*)layout.data + offset);
  }
  template <typename I>
  T& at(const I* index) const {
    int64_t offset = 0;
    for (int axis = 0; axis < ndim; axis++) {
      if ((int64_t)index[axis] < 0 || (int64_t)index[axis] >= layout.shape[axis])
        cuda_on_cpu::out_of_bounds(index[axis], layout.shape[axis]);
      offset += index[axis] * layout.strides[axis];
    }
    return *(T*)((char*)layout.data + offset);
  }
  template <typename I, size_t n>
  T& operator[](const I (&index)[n]) const { return at(index); }
  T& operator[](std::initializer_list<int64_t> index) const { return at(index.begin()); }
};

struct CIndexer {
  int64_t count, position;
  int ndim;
  const int64_t* lengths;
  int64_t indices[64];
  CIndexer(int64_t count, int ndim, const int64_t* lengths) : count(count), position(0), ndim(ndim), lengths(lengths) {}
  int64_t size() const { return count; }
  const int64_t* shape() const { return lengths; }
  void set(int64_t i) { position = i; }
  const int64_t* get() {
    int64_t i = position;
    for (int axis = ndim - 1; axis >= 0; axis--) {
      indices[axis] = i % lengths[axis];
      i /= lengths[axis];
    }
    return indices;
  }
};

// Instructions that feed and use tensor cores, as specified in the PTX manual: `mma.sync`, `ldmatrix`,
// `cp.async` and conversions.
#pragma once

namespace cuda_on_cpu {

// One half of a word.
inline float sixteen(uint32_t two, int which, bool is_brain) {
  uint16_t bits = (uint16_t)(two >> 16 * which);
  return is_brain ? brain_to_float(bits) : half_to_float(bits);
}

// c (16, 8) += a (16, step) b (step, 8); a step is 16 elements, or 8 of TF32. Lane l is number l % 4 of group l / 4. Which
// matrix elements each lane of a warp holds is the same for words of either kind.
inline void multiply_fragments(const char* kind, const char* depth, float* c, const uint32_t* a, const uint32_t* b) {
  const bool is_brain = !strcmp(kind, "bf16"), is_single = !strcmp(kind, "tf32");
  if (strcmp(depth, is_single ? "8" : "16") || !(is_brain || is_single || !strcmp(kind, "f16")))
    fail(std::string("there is no product of ") + kind + " with steps of " + depth);
  uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]}, all[32][6];
  for (int i = 0; i < 6; i += 2) {
    Thread& t = meet(0xFFFFFFFFu, words[i] | (uint64_t)words[i + 1] << 32);
    for (int l = 0; l < 32; l++) all[l][i] = (uint32_t)t.seen[l], all[l][i + 1] = (uint32_t)(t.seen[l] >> 32);
  }
  const int group = lane() / 4, number = lane() % 4;
  for (int e = 0; e < 4; e++) {
    const int row = group + e / 2 * 8, column = number * 2 + e % 2;
    float sum = c[e];
    for (int k = 0; k < 8; k++) {  // words along the inner dimension
      const uint32_t x = all[row % 8 * 4 + k % 4][row / 8 + k / 4 * 2], y = all[column * 4 + k % 4][4 + k / 4];
      if (is_single)  // the hardware ignores the last 13 bits
        sum += bits_to_float(x & ~0x1FFFu) * bits_to_float(y & ~0x1FFFu);
      else
        for (int i = 0; i < 2; i++) sum += sixteen(x, i, is_brain) * sixteen(y, i, is_brain);
    }
    c[e] = sum;
  }
}

// `cvt.rna.tf32`: to the nearest number of 10 bits after the point, ties away from zero; the hardware ignores the rest.
inline void round_to_tf32(uint32_t& made, float given) {
  memcpy(&made, &given, 4);
  made = given == given && given - given == 0 ? (made + 0x1000) & ~0x1FFFu : made == (made & ~0x1FFFu) ? made : 0x7FFFFFFFu;
}

// `cvt.rn.f16x2` and `cvt.rn.bf16x2`.
inline void pack_halves(const char* kind, uint32_t& made, float high, float low) {
  const bool is_brain = !strcmp(kind, "bf16");
  made = is_brain ? float_to_brain(low) | (uint32_t)float_to_brain(high) << 16
                  : float_to_half(low) | (uint32_t)float_to_half(high) << 16;
}

// `ldmatrix.x4`: lane l gives the address of row l % 8 of matrix l / 8, eight elements of 16 bits.
inline void load_matrices(uint32_t* a, const void* row, bool is_turned) {
  if ((uintptr_t)row % 16) fail("ldmatrix reads rows at multiples of 16 bytes");
  Thread& t = meet(0xFFFFFFFFu, (uint64_t)(uintptr_t)row);
  const int group = lane() / 4, number = lane() % 4;
  for (int i = 0; i < 4; i++) {
    uint16_t two[2];
    for (int j = 0; j < 2; j++) {
      const int r = is_turned ? number * 2 + j : group, column = is_turned ? group : number * 2 + j;
      two[j] = ((const uint16_t*)(uintptr_t)t.seen[i * 8 + r])[column];
    }
    a[i] = two[0] | (uint32_t)two[1] << 16;
  }
}

// `cp.async`: until its thread has waited for it, a copy has not arrived, and its place holds nan.
inline void begin_copy(void* to, const void* from, bool is_there) {
  if (((uintptr_t)to | (uintptr_t)from) % 16) fail("cp.async copies between multiples of 16 bytes");
  if (!current) fail("cp.async in a kernel without a barrier: the stand-in has not made fibers");
  memset(to, 0xFF, 16);
  current->copies.push_back({to, is_there ? from : nullptr, current->groups});
}

inline void end_group_of_copies() { current->groups++; }

inline void wait_for_copies(unsigned last) {
  auto& copies = current->copies;
  size_t arrived = 0;
  for (; arrived < copies.size() && copies[arrived].group + last < current->groups; arrived++) {
    const Copy& c = copies[arrived];
    c.from ? memcpy(c.to, c.from, 16) : memset(c.to, 0, 16);
  }
  copies.erase(copies.begin(), copies.begin() + arrived);
}

}  // namespace cuda_on_cpu

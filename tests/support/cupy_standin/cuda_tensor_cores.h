// `mma.sync.m16n8k16` as specified in the PTX manual: which matrix elements each lane of a warp holds.
#pragma once

namespace cuda_on_cpu {

inline float sixteen(uint32_t two, int which, bool is_brain) {
  uint16_t bits = (uint16_t)(two >> 16 * which);
  return is_brain ? brain_to_float(bits) : half_to_float(bits);
}

// c (16, 8) += a (16, 16) b (16, 8). Lane l is number l % 4 of group l / 4.
inline void multiply_fragments(const char* kind, float* c, const uint32_t* a, const uint32_t* b) {
  const bool is_brain = !strcmp(kind, "bf16");
  uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]}, all[32][6];
  for (int i = 0; i < 6; i += 2) {
    Thread& t = meet(0xFFFFFFFFu, words[i] | (uint64_t)words[i + 1] << 32);
    for (int l = 0; l < 32; l++) all[l][i] = (uint32_t)t.seen[l], all[l][i + 1] = (uint32_t)(t.seen[l] >> 32);
  }
  const int group = lane() / 4, number = lane() % 4;
  for (int e = 0; e < 4; e++) {
    const int row = group + e / 2 * 8, column = number * 2 + e % 2;
    float sum = c[e];
    for (int k = 0; k < 16; k++) {
      const int of_a = row % 8 * 4 + k % 8 / 2, of_b = column * 4 + k % 8 / 2;
      sum += sixteen(all[of_a][row / 8 + k / 8 * 2], k % 2, is_brain) * sixteen(all[of_b][4 + k / 8], k % 2, is_brain);
    }
    c[e] = sum;
  }
}

}  // namespace cuda_on_cpu

/* Products of matrices that are both computed: tensor cores multiply the bytes of their integers. */
#pragma once
#include "products.cuh"

/* Matrices of rows x depth and depth x columns, so many of each. */
struct Matrices {
  int32_t count, rows, depth, columns, left_zero_point, right_zero_point;

  /* The left ones: an image of one place for each row. */
  __host__ __device__ constexpr Convolution left() const
  {
    return {count * rows, 1, 1, depth, 1, 1, columns, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0};
  }
};

/* Four neighbouring integers of row k; 0 outside the matrix. */
template <Matrices m, typename B>
__device__ inline Words<sizeof(B)> four_columns(const B *b, int32_t k, int32_t column)
{
  Words<sizeof(B)> found = {};
  if (m.depth % 64 && k >= m.depth) return found;
  const B *place = b + k * m.columns + column;
  if constexpr (m.columns % 4 == 0) {
    if (m.columns % 32 == 0 || column < m.columns) found = *reinterpret_cast<const Words<sizeof(B)> *>(place);
  } else {
    constexpr int32_t bits = 8 * sizeof(B);
#pragma unroll
    for (int32_t n = 0; n < 4; n++) {
      if (column + n >= m.columns) continue;
      const uint32_t integer = static_cast<uint32_t>(place[n]) & ((1u << bits) - 1);
      found.words[n * bits / 32] |= integer << n * bits % 32;
    }
  }
  return found;
}

/* The bytes of four words, of which word n gets the n-th of each. */
__device__ inline void turn(uint32_t (&words)[4])
{
  const uint32_t a = __byte_perm(words[0], words[1], 0x5140), b = __byte_perm(words[2], words[3], 0x5140);
  const uint32_t c = __byte_perm(words[0], words[1], 0x7362), d = __byte_perm(words[2], words[3], 0x7362);
  words[0] = __byte_perm(a, b, 0x5410);
  words[1] = __byte_perm(a, b, 0x7632);
  words[2] = __byte_perm(c, d, 0x5410);
  words[3] = __byte_perm(c, d, 0x7632);
}

/* 16 integers from row k on of each of four neighbouring columns. */
template <Matrices m, typename B>
__device__ inline void read_columns(Planes<B> (&columns)[4], const B *b, int32_t k, int32_t column)
{
#pragma unroll
  for (int32_t word = 0; word < 4; word++) {
    Words<sizeof(B)> rows[4];
#pragma unroll
    for (int32_t r = 0; r < 4; r++) rows[r] = bytes_apart<B>(four_columns<m>(b, k + 4 * word + r, column));
#pragma unroll
    for (uint32_t plane = 0; plane < sizeof(B); plane++) {
      uint32_t words[4] = {rows[0].words[plane], rows[1].words[plane], rows[2].words[plane], rows[3].words[plane]};
      turn(words);
#pragma unroll
      for (int32_t n = 0; n < 4; n++) columns[n].at[plane].words[word] = words[n];
    }
  }
}

/* A warp's sums, and those of rows and columns alone: zero points are taken away from the sums of products. */
template <Matrices m, int high, int wide, typename A, typename B>
struct MatrixSums {
  Sums<A, B> products[high][wide];
  int32_t of_rows[high][4], of_columns[wide][4];

  __device__ void add(const Planes<A> (&a)[2 * high], const Planes<B> (&b)[4], int32_t first)
  {
    constexpr Bytes16 ones = {{0x01010101, 0x01010101, 0x01010101, 0x01010101}};
#pragma unroll
    for (int32_t i = 0; i < high; i++) {
      if (m.right_zero_point && first == 0) add_products(of_rows[i], a[2 * i].at[0], a[2 * i + 1].at[0], ones);
#pragma unroll
      for (int32_t n = 0; n < 4; n++) products[i][first + n].add(a[2 * i], a[2 * i + 1], b[n]);
    }
#pragma unroll
    for (int32_t n = 0; n < 4; n++) {
      if (m.left_zero_point) add_products(of_columns[first + n], ones, ones, b[n].at[0]);
    }
  }

  __device__ int32_t total(int32_t i, int32_t n, int32_t k) const
  {
    constexpr uint32_t left = static_cast<uint32_t>(m.left_zero_point), right = static_cast<uint32_t>(m.right_zero_point);
    uint32_t sum = products[i][n].total(k) + static_cast<uint32_t>(m.depth) * left * right;
    if (m.left_zero_point) sum -= left * static_cast<uint32_t>(of_columns[n][k]);
    if (m.right_zero_point) sum -= right * static_cast<uint32_t>(of_rows[i][k]);
    return static_cast<int32_t>(sum);
  }
};

/* Where a warp's tile of 16 * high rows by 8 * wide columns begins; rows are those of one of the matrices. */
struct Tile {
  int32_t matrix, row, column;
};

template <Matrices m, int high, int wide>
__device__ inline Tile tile_of(int32_t warp)
{
  constexpr int32_t row_tiles = (m.rows + 16 * high - 1) / (16 * high);
  constexpr int32_t column_tiles = (m.columns + 8 * wide - 1) / (8 * wide);
  const int32_t above = warp / column_tiles;
  return {above / row_tiles, above % row_tiles * 16 * high, warp % column_tiles * 8 * wide};
}

/* The sums of a warp's tile. A thread reads four neighbouring columns, one for each of four tensor cores side by side. */
template <Matrices m, int high, int wide, typename A, typename B>
__device__ inline MatrixSums<m, high, wide, A, B> tile_of_products(const A *a, const B *b, const Tile &tile, int32_t lane)
{
  const B *right = b + tile.matrix * m.depth * m.columns;
  Window windows[2 * high];
#pragma unroll
  for (int32_t i = 0; i < 2 * high; i++) {
    const int32_t row = tile.row + lane / 4 + 8 * i;
    windows[i] = window_of<m.left()>(tile.matrix * m.rows + (row < m.rows ? row : m.rows - 1));
  }
  MatrixSums<m, high, wide, A, B> sums = {};
  for (int32_t chunk = 0; chunk < m.depth; chunk += 64) {
    const int32_t k = chunk + lane % 4 * 16;
    Planes<A> rows[2 * high];
#pragma unroll
    for (int32_t i = 0; i < 2 * high; i++) rows[i] = planes_of<A>(window_integers<m.left()>(a, windows[i], k));
#pragma unroll
    for (int32_t n = 0; n < wide; n += 4) {
      Planes<B> columns[4];
      read_columns<m>(columns, right, k, tile.column + 8 * n + lane / 4 * 4);
      sums.add(rows, columns, n);
    }
  }
  return sums;
}

/* Give a warp's tile of sums, four neighbouring columns at a time, to `finish(row, first, sums)`; `row` counts the rows of all
   matrices. Of four tensor cores side by side, a thread has the sums of twice four neighbours. */
template <Matrices m, int high, int wide, typename A, typename B, typename Finish>
__device__ inline void matrix_sums(const A *a, const B *b, Finish finish)
{
  const int32_t lane = thread() % 32;
  const Tile tile = tile_of<m, high, wide>(thread() / 32);
  if (tile.matrix >= m.count) return;
  const auto sums = tile_of_products<m, high, wide>(a, b, tile, lane);
#pragma unroll
  for (int32_t n = 0; n < wide; n += 2) {
    const int32_t core = n / 4 * 4, half = n % 4 / 2;
    const int32_t first = tile.column + 8 * core + lane % 4 * 8 + 4 * half;
    if (first >= m.columns) continue;
#pragma unroll
    for (int32_t i = 0; i < 2 * high; i++) {
      const int32_t row = tile.row + lane / 4 + 8 * i;
      if (row >= m.rows) continue;
      int32_t four_sums[4];
#pragma unroll
      for (int32_t k = 0; k < 4; k++) four_sums[k] = sums.total(i / 2, core + k, i % 2 * 2 + half);
      finish(tile.matrix * m.rows + row, first, four_sums);
    }
  }
}

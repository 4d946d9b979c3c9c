/* All steps of a recurrent layer in one direction, forward and backward; called from recurrent.py.

   A loop performs all steps for some sequences, independently of the others. The rows of all steps are concatenated:
   step t has rows starts[t] to starts[t + 1], one for each sequence of sufficient length. A step is one product with
   the weight of the state and one pass over the gates. Small float32 products are our own (packed_matmul.h), because BLAS
   would repack the same weights in each step; the others use BLAS. */

#ifndef REAL                    /* the file includes itself once for each type and each width of float vectors */
#ifndef CYGRAD_RECURRENT_H
#define CYGRAD_RECURRENT_H

#include <string.h>
#include "platform/target_clones.h"
#include "simd/each_width.h"
#include "base/packed_matmul.h"

/* Some rows of one step. Forward: `gates` holds the products with the input, then the values of the gates; `products`
   are those with the state; `cell` and `state` come from the previous step. Backward: `cell` and `state` are gradients;
   `before` is the state or cell of the previous step; `slopes` are the gradients of the sums that the gates are
   functions of; `of_state` are those of the products with the state, where they differ. */
typedef struct {
    void *gates, *products, *bias, *state, *out, *kept, *cell, *tanhs, *before, *slopes, *of_state;
    Py_ssize_t rows, width;
} recurrent_step;

typedef void (*step_function)(const recurrent_step *);

CYGRAD_BEGIN_CHOOSING_LOOPS

#define REAL float
#define TANH(x) OF(hyperbolic_tangent)(x)
#define LOGISTIC(x) OF(logistic)(x)
#define LOOPS "nn/recurrent.h"
#include "simd/each_width.h"
#define logistic_gates_f32(...) CALL_WIDEST(logistic_gates, __VA_ARGS__)
#define tanh_gates_f32(...) CALL_WIDEST(tanh_gates, __VA_ARGS__)
#define lstm_state_f32(...) CALL_WIDEST(lstm_state, __VA_ARGS__)
#define gru_state_f32(...) CALL_WIDEST(gru_state, __VA_ARGS__)
#undef TANH
#undef LOGISTIC

#define CLONES CYGRAD_CLONES
#define NAME(name) name##_f32
#include "nn/recurrent.h"
#undef REAL
#undef CLONES
#undef NAME

#define REAL double
#define TANH(x) squashed_double(2 * (x), 0)
#define LOGISTIC(x) squashed_double(x, 1)
#define VECTORIZED              /* training in double is rare, and clones cost code size */
#define CLONES
#define NAME(name) name##_f64
#include "nn/recurrent.h"
#undef REAL
#undef TANH
#undef LOGISTIC
#undef VECTORIZED
#undef CLONES
#undef NAME

CYGRAD_END_LOOPS

enum { LSTM, GRU };             /* and RNN_TANH, RNN_RELU: as in recurrent.py */

#define BOTH(name) {name##_f32, name##_f64}
static const step_function steps_forward[][2] = {BOTH(lstm), BOTH(gru), BOTH(rnn_tanh), BOTH(rnn_relu)};
static const step_function steps_backward[][2] = {
    BOTH(lstm_slopes), BOTH(gru_slopes), BOTH(rnn_tanh_slopes), BOTH(rnn_relu_slopes)};
#undef BOTH

/* n of both calls: kind, steps, whether from last to first, width, output width, row length of the gates, whether
   products are small, row length of the input if the loop handles it, too, else 0, number of sequences */
enum { KIND, STEPS, REVERSED, WIDTH, OUT_WIDTH, GATES_WIDTH, IS_SMALL, IN_WIDTH, SEQUENCES };

/* A matrix (depth, n) to multiply by in each step, and the same in panels, or NULL. */
typedef struct { void *matrix, *memory; float *panels; Py_ssize_t row, column, depth, n; } step_weight;

/* Panels are omitted where they are of no use, or if there is no memory. */
static step_weight step_weight_of(const native_call *c, void *matrix, Py_ssize_t row, Py_ssize_t column, Py_ssize_t depth,
                                  Py_ssize_t n)
{
    step_weight w = {matrix, NULL, NULL, row, column, depth, n};
#ifdef CYGRAD_VECTORS
    if (!c->is_double && c->n[IS_SMALL] && HAS_PANELS && n % 16 == 0)
        w.memory = PyMem_RawMalloc(depth * n * sizeof(float) + 63);
    if (w.memory) {
        const Py_ssize_t panel = panel_width();
        float *to = w.panels = (float *)(((uintptr_t)w.memory + 63) & ~(uintptr_t)63);  /* aligned to cache lines */
        for (Py_ssize_t j = 0, width; j < n; j += width, to += depth * width) {
            width = n - j < panel ? n - j : panel;
            fill_panel((const float *)matrix + j * column, row, column, depth, width, to);
        }
    }
#endif
    return w;
}

static void multiply_step(const native_call *c, const step_weight *w, void *a, void *out, Py_ssize_t rows)
{
#ifdef CYGRAD_VECTORS
    if (w->panels && rows % 8 == 0) {
        multiply_panels(rows, w->n, w->depth, a, w->depth, 1, w->panels, out, w->n, 0);
        return;
    }
#endif
    multiply_strided(c, a, w->depth, 1, w->matrix, w->row, w->column, out, w->n, rows, w->depth, w->n);
}

/* The number of rows of step t that belong to the sequences from `first` on; 0 if there is no such step. */
static Py_ssize_t rows_of(const native_call *c, const int64_t *starts, Py_ssize_t t, Py_ssize_t first, Py_ssize_t count)
{
    const Py_ssize_t rows = t < 0 || t >= c->n[STEPS] ? 0 : (Py_ssize_t)(starts[t + 1] - starts[t]) - first;
    return rows < 0 ? 0 : rows < count ? rows : count;
}

/* data: gates, weight of the state, bias, state, out, scratch for products (a row per sequence), starts, kept, cell,
   tanh of the cells; for projections the unprojected output and the weight (transposed); the input and its weight if
   the gates do not hold their product yet.

   `kept` are the cells of an LSTM, or the products of a GRU's third gate with the state. It is NULL for a plain RNN,
   whose gates are its output, and so are `cell`, its tanh and the projection for all but an LSTM. State and cell have a
   row per sequence, which is the initial one on entry and the final one on return. */
static void recurrent_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    enum { GATES, WEIGHT, BIAS, STATE, OUT, PRODUCTS, STARTS, KEPT, CELL, TANHS, HIDDEN, PROJECTION, INPUT, OF_INPUT };
    const native_call *c = context;
    const Py_ssize_t *n = c->n, width = n[WIDTH], out_width = n[OUT_WIDTH], gates_width = n[GATES_WIDTH];
    const Py_ssize_t in_width = n[IN_WIDTH];
    const int64_t *starts = (const int64_t *)c->data[STARTS];
    const step_weight weight = step_weight_of(c, AT(WEIGHT, 0), 1, out_width, out_width, gates_width);
    step_weight of_input = {0};
    if (in_width) of_input = step_weight_of(c, AT(OF_INPUT, 0), 1, in_width, in_width, gates_width);
    for (Py_ssize_t k = 0; k < n[STEPS]; k++) {
        const Py_ssize_t t = n[REVERSED] ? n[STEPS] - 1 - k : k, at = starts[t] + first;
        const Py_ssize_t rows = rows_of(c, starts, t, first, count);
        void *state = AT(STATE, first * out_width), *out = AT(OUT, at * out_width);
        void *hidden = c->data[HIDDEN] ? AT(HIDDEN, at * width) : out;
        const recurrent_step step = {
            .gates = AT(GATES, at * gates_width), .products = AT(PRODUCTS, first * gates_width), .bias = AT(BIAS, 0),
            .state = state, .out = hidden, .kept = AT(KEPT, at * width), .cell = AT(CELL, first * width),
            .tanhs = AT(TANHS, at * width), .rows = rows, .width = width};
        if (rows == 0) continue;
        if (in_width) multiply_step(c, &of_input, AT(INPUT, at * in_width), step.gates, rows);
        multiply_step(c, &weight, state, step.products, rows);
        steps_forward[n[KIND]][c->is_double](&step);
        if (c->data[PROJECTION]) multiply(c, hidden, AT(PROJECTION, 0), out, rows, width, out_width);
        memcpy(state, out, rows * out_width * c->itemsize);
    }
    PyMem_RawFree(weight.memory);
    PyMem_RawFree(of_input.memory);
}

/* Further data of a gradient loop that also computes the gradients of input and weights: the input, its weight, the
   output (NULL for an LSTM), the initial states, scratch with as many rows as the slopes, each as long as the longer of
   input and output, and the gradients, NULL if not wanted: of the input; per chunk, of its weight and of the weight of
   the state; and per chunk three rows: of the bias, of the bias of the state (of a GRU), and scratch. */
enum { INPUTS = 14, INPUT_WEIGHT, OUTPUTS, FIRST_STATES, ROOM, D_INPUT, D_INPUT_WEIGHT, D_WEIGHT, D_BIASES };

/* Gathers the rows of each step that belong to `count` sequences into `part`, step by step, or scatters them back. */
static void gather_steps(const native_call *c, char *all, char *part, Py_ssize_t first, Py_ssize_t count, Py_ssize_t width,
                         int is_back)
{
    const Py_ssize_t size = count * width * c->itemsize;
    for (Py_ssize_t t = 0; t < c->n[STEPS]; t++, part += size) {
        char *there = all + (t * c->n[SEQUENCES] + first) * width * c->itemsize;
        memcpy(is_back ? there : part, is_back ? part : there, size);
    }
}

/* Gathers the states that each step started from, step by step. Those of an LSTM are recomputed. */
static void gather_states(const native_call *c, char *part, Py_ssize_t first, Py_ssize_t count)
{
    enum { GATES = 0, TANHS = 9 };      /* as below */
    const Py_ssize_t width = c->n[OUT_WIDTH], steps = c->n[STEPS], size = count * width * c->itemsize;
    const Py_ssize_t first_step = c->n[REVERSED] ? steps - 1 : 0;
    for (Py_ssize_t t = 0; t < steps; t++, part += size) {
        const Py_ssize_t at = (c->n[REVERSED] ? t + 1 : t - 1) * c->n[SEQUENCES] + first;
        if (t == first_step) memcpy(part, c->data[FIRST_STATES] + first * width * c->itemsize, size);
        else if (c->data[OUTPUTS]) memcpy(part, c->data[OUTPUTS] + at * width * c->itemsize, size);
        else BY_TYPE(c->is_double, lstm_outputs, AT(GATES, at * 4 * width), AT(TANHS, at * width), part, count, width);
    }
}

/* The sum of rows, by way of partial sums in `room`, which loses fewer digits. */
static void add_rows_of(const native_call *c, char *rows, Py_ssize_t count, Py_ssize_t width, char *sum, char *room)
{
    const Py_ssize_t size = width * c->itemsize, some = 64;
    memset(sum, 0, size);
    for (Py_ssize_t i = 0; i < count; i++, rows += size) {
        if (i % some == 0) memcpy(room, rows, size);
        else BY_TYPE(c->is_double, add, width, (void *)rows, (void *)room);
        if (i % some == some - 1 || i == count - 1) BY_TYPE(c->is_double, add, width, (void *)room, (void *)sum);
    }
}

/* All gradients from the slopes of a chunk, which are stored step by step, so that its thread has them in its cache. */
static void gradients_of_part(const native_call *c, char *slopes, char *of_state, Py_ssize_t first, Py_ssize_t count)
{
    const Py_ssize_t *n = c->n, in_width = n[IN_WIDTH], width = n[OUT_WIDTH], gates = n[GATES_WIDTH];
    const Py_ssize_t rows = n[STEPS] * count, part = first / c->piece;
    void *room = AT(ROOM, n[STEPS] * first * (in_width > width ? in_width : width));
    if (c->data[D_INPUT_WEIGHT]) {
        gather_steps(c, c->data[INPUTS], room, first, count, in_width, 0);
        multiply_strided(c, slopes, 1, gates, room, in_width, 1, AT(D_INPUT_WEIGHT, part * gates * in_width), in_width,
                         gates, rows, in_width);
    }
    if (c->data[D_WEIGHT]) {
        gather_states(c, room, first, count);
        multiply_strided(c, of_state, 1, gates, room, width, 1, AT(D_WEIGHT, part * gates * width), width, gates, rows,
                         width);
    }
    if (c->data[D_INPUT]) {
        multiply(c, slopes, AT(INPUT_WEIGHT, 0), room, rows, gates, in_width);
        gather_steps(c, c->data[D_INPUT], room, first, count, in_width, 1);
    }
    if (c->data[D_BIASES]) {
        char *sums = AT(D_BIASES, part * 3 * gates);
        const Py_ssize_t size = gates * c->itemsize;
        add_rows_of(c, slopes, rows, gates, sums, sums + 2 * size);
        if (of_state != slopes) add_rows_of(c, of_state, rows, gates, sums + size, sums + 2 * size);
    }
}

/* data: gates, weight of the state, gradient of the output or NULL, kept, initial states (`kept` has the later
   ones), starts, gradient of the state, slopes, gradient of the cell (for a GRU scratch for one of the state), tanh
   of the cells, slopes of the products with the state (of a GRU); for projections the weight, gradients of the
   output to be written, scratch for gradients of the unprojected output.

   For a GRU, `kept` are states, and the products of its third gate with the state are passed as the tanh of the
   cells. */
static void recurrent_gradient_part(void *context, Py_ssize_t first, Py_ssize_t count)
{
    enum {
        GATES, WEIGHT, GRAD, KEPT, INITIAL, STARTS, STATE, SLOPES, CELL, TANHS, OF_STATE, PROJECTION, PROJECTED, HIDDEN
    };
    const native_call *c = context;
    const Py_ssize_t *n = c->n, width = n[WIDTH], out_width = n[OUT_WIDTH], gates_width = n[GATES_WIDTH];
    const int64_t *starts = (const int64_t *)c->data[STARTS];
    const step_weight weight = step_weight_of(c, AT(WEIGHT, 0), out_width, 1, gates_width, out_width);
    void *state = AT(STATE, first * out_width);
    for (Py_ssize_t k = 0; k < n[STEPS]; k++) {
        const Py_ssize_t t = n[REVERSED] ? k : n[STEPS] - 1 - k, before = n[REVERSED] ? t + 1 : t - 1;
        const Py_ssize_t at = starts[t] + first, rows = rows_of(c, starts, t, first, count);
        const Py_ssize_t later = rows_of(c, starts, before, first, rows);      /* rows that have a previous step */
        const Py_ssize_t own = n[IN_WIDTH] ? first * n[STEPS] + t * count : at; /* where the slopes go */
        void *hidden = state;
        if (rows == 0) continue;
        if (c->data[GRAD]) BY_TYPE(c->is_double, add, rows * out_width, AT(GRAD, at * out_width), state);
        if (c->data[PROJECTION]) {
            hidden = AT(HIDDEN, first * width);
            memcpy(c->data[PROJECTED] + at * out_width * c->itemsize, state, rows * out_width * c->itemsize);
            multiply(c, state, AT(PROJECTION, 0), hidden, rows, out_width, width);
        }
        for (Py_ssize_t row = 0, end = later; row < rows; row = end, end = rows) {
            const recurrent_step step = {
                .gates = AT(GATES, (at + row) * gates_width), .state = (char *)hidden + row * width * c->itemsize,
                .cell = AT(CELL, (first + row) * width), .tanhs = AT(TANHS, (at + row) * width),
                .before = row < later ? AT(KEPT, (starts[before] + first) * width) : AT(INITIAL, (first + row) * width),
                .slopes = AT(SLOPES, (own + row) * gates_width), .of_state = AT(OF_STATE, (own + row) * gates_width),
                .rows = end - row, .width = width};
            steps_backward[n[KIND]][c->is_double](&step);
        }
        if (n[KIND] == GRU) {
            multiply_step(c, &weight, AT(OF_STATE, own * gates_width), AT(CELL, first * width), rows);
            BY_TYPE(c->is_double, add, rows * width, AT(CELL, first * width), state);
        } else {
            multiply_step(c, &weight, AT(SLOPES, own * gates_width), state, rows);
        }
    }
    PyMem_RawFree(weight.memory);
    if (n[IN_WIDTH]) {
        char *slopes = AT(SLOPES, first * n[STEPS] * gates_width);
        gradients_of_part(c, slopes, n[KIND] == GRU ? AT(OF_STATE, first * n[STEPS] * gates_width) : slopes, first, count);
    }
}

#endif
#else

#ifdef VECTORIZED               /* of double, and of each width of float */
/* z = f(z + p + b) for n elements */
#define DEFINE_GATES(GATES, FUNCTION)                                                                           \
    static VECTORIZED void NAME(GATES)(REAL *z, const REAL *p, const REAL *b, Py_ssize_t n)                     \
    {                                                                                                           \
        FOR_ALL(n, GIVE(z, FUNCTION(TAKE(z) + (TAKE(p) + TAKE(b))));)                                           \
    }
DEFINE_GATES(logistic_gates, LOGISTIC)
DEFINE_GATES(tanh_gates, TANH)
#undef DEFINE_GATES

/* Gates i, f, g, o: c = f * c + i * g, h = o * tanh(c). */
static VECTORIZED void NAME(lstm_state)(const REAL *z, REAL *cell, REAL *kept, REAL *tanhs, REAL *out, Py_ssize_t w)
{
    FOR_ALL(w,
        const ELEMENTS c = TAKE(z + w) * TAKE(cell) + TAKE(z) * TAKE(z + 2 * w);
        const ELEMENTS t = TANH(c);
        GIVE(cell, c);
        GIVE(kept, c);
        GIVE(tanhs, t);
        GIVE(out, TAKE(z + 3 * w) * t);)
}

/* Gates r, z, n: n = tanh(x_n + r * (h_n + bias)), h = n + z * (h - n). */
static VECTORIZED void NAME(gru_state)(REAL *z, const REAL *p, const REAL *b, const REAL *h, REAL *kept, REAL *out,
                                       Py_ssize_t w)
{
    FOR_ALL(w,
        const ELEMENTS candidate = TAKE(p + 2 * w) + TAKE(b + 3 * w);
        const ELEMENTS n = TANH(TAKE(z + 2 * w) + TAKE(b + 2 * w) + TAKE(z) * candidate);
        GIVE(z + 2 * w, n);
        GIVE(kept, candidate);
        GIVE(out, n + TAKE(z + w) * (TAKE(h) - n));)
}
#endif

#ifdef CLONES                   /* of both types */
/* NEXT_ROW advances each pointer by a row of its own. */
#define FOR_ROWS(NEXT_ROW)                                                                                      \
    const Py_ssize_t w = s->width;                                                                              \
    for (Py_ssize_t row = 0; row < s->rows; row++, NEXT_ROW)
#define FOR_ELEMENTS(NEXT_ROW) FOR_ROWS(NEXT_ROW) CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < w; j++)

static void NAME(lstm)(const recurrent_step *s)
{
    REAL *z = s->gates, *cell = s->cell, *kept = s->kept, *tanhs = s->tanhs, *out = s->out;
    const REAL *p = s->products, *b = s->bias;
    FOR_ROWS((z += 4 * w, p += 4 * w, cell += w, kept += w, tanhs += w, out += w)) {
        NAME(logistic_gates)(z, p, b, 2 * w);
        NAME(tanh_gates)(z + 2 * w, p + 2 * w, b + 2 * w, w);
        NAME(logistic_gates)(z + 3 * w, p + 3 * w, b + 3 * w, w);
        NAME(lstm_state)(z, cell, kept, tanhs, out, w);
    }
}

/* The output of some rows, from their gates and the tanh of their cells. */
static void NAME(lstm_outputs)(const void *gates, const void *tanhs, void *to, Py_ssize_t rows, Py_ssize_t w)
{
    const REAL *z = gates, *t = tanhs;
    REAL *out = to;
    for (Py_ssize_t row = 0; row < rows; row++, z += 4 * w, t += w, out += w)
        CYGRAD_INDEPENDENT for (Py_ssize_t j = 0; j < w; j++) out[j] = z[j + 3 * w] * t[j];
}

static CLONES void NAME(lstm_slopes)(const recurrent_step *s)
{
    const REAL *z = s->gates, *before = s->before, *tanhs = s->tanhs, *dh = s->state;
    REAL *d = s->slopes, *cell = s->cell;
    FOR_ELEMENTS((z += 4 * w, d += 4 * w, before += w, tanhs += w, dh += w, cell += w)) {
        const REAL i = z[j], f = z[j + w], g = z[j + 2 * w], o = z[j + 3 * w], t = tanhs[j];
        const REAL dc = cell[j] + dh[j] * o * (1 - t * t);
        d[j] = dc * g * i * (1 - i);
        d[j + w] = dc * before[j] * f * (1 - f);
        d[j + 2 * w] = dc * i * (1 - g * g);
        d[j + 3 * w] = dh[j] * t * o * (1 - o);
        cell[j] = dc * f;
    }
}

static void NAME(gru)(const recurrent_step *s)
{
    REAL *z = s->gates, *kept = s->kept, *out = s->out;
    const REAL *p = s->products, *b = s->bias, *h = s->state;
    FOR_ROWS((z += 3 * w, p += 3 * w, kept += w, h += w, out += w)) {
        NAME(logistic_gates)(z, p, b, 2 * w);
        NAME(gru_state)(z, p, b, h, kept, out, w);
    }
}

/* Reduces the gradient of the state to the part that does not go through the products. */
static CLONES void NAME(gru_slopes)(const recurrent_step *s)
{
    const REAL *z = s->gates, *before = s->before, *candidate = s->tanhs;
    REAL *d = s->slopes, *e = s->of_state, *dh = s->state;
    FOR_ELEMENTS((z += 3 * w, d += 3 * w, e += 3 * w, before += w, candidate += w, dh += w)) {
        const REAL r = z[j], u = z[j + w], n = z[j + 2 * w], dn = dh[j] * (1 - u) * (1 - n * n);
        d[j] = e[j] = dn * candidate[j] * r * (1 - r);
        d[j + w] = e[j + w] = dh[j] * (before[j] - n) * u * (1 - u);
        d[j + 2 * w] = dn;
        e[j + 2 * w] = dn * r;
        dh[j] *= u;
    }
}

static void NAME(rnn_tanh)(const recurrent_step *s)
{
    REAL *z = s->gates;
    const REAL *p = s->products;
    FOR_ROWS((z += w, p += w)) NAME(tanh_gates)(z, p, s->bias, w);
}

static void NAME(rnn_relu)(const recurrent_step *s)
{
    REAL *z = s->gates;
    const REAL *p = s->products, *b = s->bias;
    FOR_ELEMENTS((z += w, p += w)) {
        const REAL x = z[j] + (p[j] + b[j]);
        z[j] = x <= 0 ? 0 : x;
    }
}

static void NAME(rnn_tanh_slopes)(const recurrent_step *s)
{
    const REAL *out = s->gates, *dh = s->state;
    REAL *d = s->slopes;
    FOR_ELEMENTS((out += w, dh += w, d += w)) d[j] = dh[j] * (1 - out[j] * out[j]);
}

static void NAME(rnn_relu_slopes)(const recurrent_step *s)
{
    const REAL *out = s->gates, *dh = s->state;
    REAL *d = s->slopes;
    FOR_ELEMENTS((out += w, dh += w, d += w)) d[j] = out[j] <= 0 ? 0 : dh[j];
}

#undef FOR_ROWS
#undef FOR_ELEMENTS
#endif
#endif

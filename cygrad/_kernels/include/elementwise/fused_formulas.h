/* The formulas of the fused elementwise functions. Each is written once: the CPU's loops (fused_loops.h), the text of the
   GPU's kernels (gpu/elementwise/fused_loops.py) and `FUSED_NUMBERS` of loop_table.pyx are made from it.

   x, y and z are elements of the operands; a, b and c are numbers. An entry of

       FORMULA gives name, number of operands, result;
       STAGED also has a stage, a function that takes most of the time, and its argument: e is stage(argument);
       CALL calls a function of the C library for each element.

   Stages are EXP, EXPM1 (e^t - 1), LOG1PEXP (log(1 + e^t) for t <= 0) and LOGISTIC (1 / (1 + e^-t)). In formulas,
   KEPT(x, condition) is x or, if the condition is false, 0; BETWEEN(x, low, high) clamps and keeps NaN; REAL is the type. */

#ifndef CYGRAD_FUSED_FORMULAS_H
#define CYGRAD_FUSED_FORMULAS_H

#define CYGRAD_FORMULAS(FORMULA, STAGED, CALL) \
    /* functions of x */ \
    FORMULA(leaky_relu, 2, x * (x > 0 ? 1 : y)) \
    FORMULA(threshold, 1, x <= a ? b : x) \
    FORMULA(hardtanh, 1, BETWEEN(x, a, b)) \
    FORMULA(hardsigmoid, 1, BETWEEN(x + 3, 0, 6) / 6) \
    FORMULA(hardswish, 1, x * (BETWEEN(x + 3, 0, 6) / 6)) \
    FORMULA(hardshrink, 1, KEPT(x, !((x >= -a) & (x <= a)))) \
    FORMULA(softshrink, 1, x * (ABS(x) > a) - COPYSIGN(ABS(x) > a ? a : 0, x)) \
    STAGED(softplus, 1, LOG1PEXP, -ABS(x * a), x * a > b ? x : ((x * a > 0 ? x * a : 0) + e) / a) \
    STAGED(logsigmoid, 1, LOG1PEXP, -ABS(x), (x < 0 ? x : 0) - e) \
    STAGED(elu, 1, EXPM1, x > 0 ? 0 : x * c, x > 0 ? x * b : e * a) \
    CALL(erfc, 1, (REAL)erfc(x))        /* for many float32 elements on the CPU see polynomial_tables.py */ \
    /* gradients: x is the incoming gradient, y the input, numbers as for the function */ \
    FORMULA(leaky_relu_gradient, 3, x * (y > 0 ? 1 : z)) \
    FORMULA(negative_products, 2, KEPT(x * y, !(y > 0))) \
    FORMULA(above, 2, KEPT(x, !(y <= a))) \
    FORMULA(inside, 2, KEPT(x, !((y <= a) | (y >= b)))) \
    FORMULA(outside, 2, KEPT(x, !((y >= -a) & (y <= a)))) \
    FORMULA(hardsigmoid_gradient, 2, KEPT(x * (REAL)(1.0 / 6), (y > -3) & (y < 3))) \
    FORMULA(hardswish_gradient, 2, KEPT(x * (y < 3 ? y * (REAL)(1.0 / 3) + (REAL)0.5 : 1), !(y <= -3))) \
    STAGED(softplus_gradient, 2, LOGISTIC, y * a, x * (y * a > b ? 1 : e)) \
    STAGED(logsigmoid_gradient, 2, LOGISTIC, -y, x * e) \
    STAGED(elu_gradient, 2, EXP, y > 0 ? 0 : y * c, x * (y <= 0 ? e * (a * c) : b)) \
    /* functions of two operands */ \
    FORMULA(squared_error, 2, (x - y) * (x - y)) \
    FORMULA(smooth_l1, 2, ABS(x - y) < a ? (x - y) * (x - y) * b : ABS(x - y) - (REAL)0.5 * a) \
    FORMULA(huber, 2, ABS(x - y) < a ? (x - y) * (x - y) * (REAL)0.5 : a * (ABS(x - y) - (REAL)0.5 * a)) \
    STAGED(binary_cross_entropy_with_logits, 2, LOG1PEXP, -ABS(x), (1 - y) * x + ((x < 0 ? -x : 0) + e)) \
    STAGED(soft_margin, 2, LOG1PEXP, -ABS(x * y), (x * y < 0 ? -x * y : 0) + e) \
    STAGED(logaddexp, 2, LOG1PEXP, x == y ? 0 : -ABS(x - y) * a, (x < y ? y : x) + e * b) \
    /* their gradients for x; z is the incoming gradient */ \
    FORMULA(squared_error_gradient, 3, 2 * (x - y) * z) \
    FORMULA(bounded_difference, 3, BETWEEN((x - y) * b, -a, a) * z) \
    STAGED(binary_cross_entropy_with_logits_gradient, 3, LOGISTIC, x, (e - y) * z) \
    STAGED(exponential_share, 3, LOGISTIC, x == y ? 0 : (x - y) * a, e * z) \
    STAGED(soft_margin_gradient, 3, LOGISTIC, -x * y, -y * e * z)

/* Functions that GPUs compute by other kernels. */
#define CYGRAD_FORMULAS_OF_CPU(FORMULA, STAGED, CALL) \
    FORMULA(frac, 1, x - WHOLE(x)) \
    FORMULA(rounded, 1, NEAREST(x * a / b) / a * b) \
    FORMULA(where_finite, 2, KEPT(x, ABS(y) <= FINITE)) \
    FORMULA(whole_quotient, 2, WHOLE(x / y)) \
    FORMULA(heaviside, 2, x == 0 ? y : x > 0 ? (REAL)1 : 0) \
    FORMULA(ldexp, 2, BY_POWER_OF_2(x, y)) \
    FORMULA(lerp_by_number, 2, (y - x) * a + (b > 0 ? y : x)) \
    FORMULA(lerp, 3, (y - x) * (ABS(z) < (REAL)0.5 ? z : z - 1) + (ABS(z) < (REAL)0.5 ? x : y)) \
    FORMULA(addcmul, 3, x + a * y * z) \
    FORMULA(addcdiv, 3, x + y / z * a) \
    FORMULA(clamped, 3, WITHIN(z, >=, WITHIN(y, <=, x))) \
    CALL(incomplete_gamma, 2, (REAL)incomplete_gamma(x, y, a != 0))

/* Name, number of operands, stage, its argument and formula of each; for the CPU's only the name. */
typedef struct {
    const char *name;
    int operands;
    const char *stage, *argument, *formula;
} fused_formula;

#define CYGRAD_TEXT(NAME, OPERANDS, RESULT) {#NAME, OPERANDS, NULL, NULL, #RESULT},
#define CYGRAD_STAGED_TEXT(NAME, OPERANDS, STAGE, ARGUMENT, RESULT) {#NAME, OPERANDS, #STAGE, #ARGUMENT, #RESULT},
#define CYGRAD_NAME_ONLY(NAME, ...) {#NAME, 0, NULL, NULL, NULL},
static const fused_formula fused_formulas[] = {
    CYGRAD_FORMULAS(CYGRAD_TEXT, CYGRAD_STAGED_TEXT, CYGRAD_TEXT)
    CYGRAD_FORMULAS_OF_CPU(CYGRAD_NAME_ONLY, CYGRAD_NAME_ONLY, CYGRAD_NAME_ONLY)
    CYGRAD_NAME_ONLY(finite)            /* written out in fused_loops.h */
};
enum { FUSED_COUNT = sizeof fused_formulas / sizeof *fused_formulas };

#endif

/* The list of the loops that Python calls by number: each one's name and function. The only place where they are numbered.

   The enum below and the functions of loop_table.h are made from this list, and `LOOPS` of loop_table.pyx from the names:
   Python modules read `LOOPS.GATHER`. WITH_VECTORS marks loops that exist only if the compiler has vector extensions. */

#ifndef CYGRAD_LOOP_NUMBERS_H
#define CYGRAD_LOOP_NUMBERS_H

#define CYGRAD_LOOPS(LOOP) \
    LOOP(NORMALIZE_ROWS, normalize_rows_part) \
    LOOP(ROWS_GRADIENT, rows_gradient_part) \
    LOOP(NORMALIZE_RUNS, normalize_runs_part) \
    LOOP(RUNS_GRADIENT, runs_gradient_part) \
    LOOP(NORMALIZE_COLUMNS, normalize_columns_part) \
    LOOP(COLUMNS_GRADIENT, columns_gradient_part) \
    LOOP(COPY_PATCHES, copy_patches_part) \
    LOOP(ADD_PATCHES, add_patches_part) \
    LOOP(LARGEST, largest_part) \
    LOOP(COMBINE, combine_part) \
    LOOP(RECURRENT, recurrent_part) \
    LOOP(RECURRENT_GRADIENT, recurrent_gradient_part) \
    LOOP(CROSS_ENTROPY, cross_entropy_part) \
    LOOP(CROSS_ENTROPY_GRADIENT, cross_entropy_gradient_part) \
    LOOP(ATTENTION, attention_part) \
    LOOP(ATTENTION_GRADIENT, attention_gradient_part) \
    LOOP(RUNNING_SUMS, running_sums_part) \
    LOOP(WINOGRAD_FILTERS, WITH_VECTORS(winograd_filters_part)) \
    LOOP(WINOGRAD_RESULTS, WITH_VECTORS(winograd_results_part)) \
    LOOP(WINOGRAD_SUMS, WITH_VECTORS(winograd_sums_part)) \
    LOOP(PATCHWISE_RESULTS, WITH_VECTORS(patchwise_results_part)) \
    LOOP(PATCHWISE_IMAGES, WITH_VECTORS(patchwise_images_part)) \
    LOOP(PATCHWISE_SUMS, WITH_VECTORS(patchwise_sums_part)) \
    LOOP(FUSED, fused_part) \
    LOOP(GATHER, gather_part) \
    LOOP(FIRSTS, firsts_part) \
    LOOP(GATED, gated_part) \
    LOOP(TAKE, take_part) \
    LOOP(RUNNING_EXTREMA, running_extrema_part) \
    LOOP(SCATTER, scatter_part) \
    LOOP(TRIANGLE, triangle_part) \
    LOOP(NONZERO, nonzero_part) \
    LOOP(COUNT_NONZERO, count_nonzero_part) \
    LOOP(UNIFORM, uniform_part) \
    LOOP(DISTANCES, distances_part) \
    LOOP(FINISHED_DISTANCES, finished_distances_part) \
    LOOP(RESAMPLE, resample_part) \
    LOOP(TABLED, tabled_part) \
    LOOP(FOLLOW, follow_part) \
    LOOP(RESAMPLE_PLANES, resample_planes_part) \
    LOOP(LABEL_MARGINS, label_margins_part) \
    LOOP(COMPRESS, compress_part) \
    LOOP(SAMPLE, sample_part) \
    LOOP(SAMPLE_GRADIENT, sample_gradient_part) \
    LOOP(SEARCH, search_part) \
    LOOP(SHAPE_DRAWS, shape_part) \
    LOOP(CTC, ctc_part) \
    LOOP(LARGEST_OF_PLACES, largest_of_places_part) \
    LOOP(PAIRS_GRADIENT, pairs_gradient_part) \
    LOOP(SUM_WEIGHTS, sum_weights_part) \
    LOOP(PICK, pick_part) \
    LOOP(TRIANGLE_PLACES, triangle_places_part) \
    LOOP(SPACED, spaced_part) \
    LOOP(RECURRENCE, recurrence_part)

#define CYGRAD_NUMBER(name, function) name,
enum { CYGRAD_LOOPS(CYGRAD_NUMBER) LOOP_COUNT };
#undef CYGRAD_NUMBER

#endif

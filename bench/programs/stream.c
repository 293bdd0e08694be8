/* The four loops of the STREAM benchmark, for a comparison with the kernel triad of pmmpi screen: each line on standard
   input starts one repetition, which prints GB/s of copy, scale, add and triad. Arguments: elements of an array; 1 for
   huge pages. Compile with -O3 -fopenmp; also with -DNON_TEMPORAL -march=native for non-temporal stores. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef NON_TEMPORAL
#include <immintrin.h>
#ifdef __AVX512F__
enum { WIDTH = 8 };
typedef __m512d Vector;
#define LOAD _mm512_loadu_pd
#define STORE _mm512_stream_pd
#define SET _mm512_set1_pd
#define ADD _mm512_add_pd
#define MUL _mm512_mul_pd
#elif defined __AVX__
enum { WIDTH = 4 };
typedef __m256d Vector;
#define LOAD _mm256_loadu_pd
#define STORE _mm256_stream_pd
#define SET _mm256_set1_pd
#define ADD _mm256_add_pd
#define MUL _mm256_mul_pd
#else
enum { WIDTH = 2 };
typedef __m128d Vector;
#define LOAD _mm_loadu_pd
#define STORE _mm_stream_pd
#define SET _mm_set1_pd
#define ADD _mm_add_pd
#define MUL _mm_mul_pd
#endif
#define LOOP(to, ordinary, vector)                                         \
    {                                                                      \
        Vector s = SET(3.0);                                               \
        (void)s;                                                           \
        _Pragma("omp parallel for schedule(static)")                       \
        for (long i = 0; i < elements; i += WIDTH) STORE(to + i, vector);  \
        _Pragma("omp parallel") _mm_sfence();                              \
    }
#else
#define LOOP(to, ordinary, vector)                                 \
    {                                                              \
        _Pragma("omp parallel for")                                \
        for (long i = 0; i < elements; i++) to[i] = ordinary;      \
    }
#endif

static double *array(long elements, int huge) {
    size_t bytes = (elements * sizeof(double) + (2 << 20) - 1) >> 21 << 21;
    double *start = aligned_alloc(2 << 20, bytes);
    if (!start) exit(1);
    madvise(start, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return start;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long elements = atol(argv[1]) / 64 * 64;
    int huge = atoi(argv[2]);
    double *restrict a = array(elements, huge), *restrict b = array(elements, huge), *restrict c = array(elements, huge);
    double expected_a = 1, expected_b = 2, expected_c = 0, s = 3.0;
    #pragma omp parallel for
    for (long i = 0; i < elements; i++) a[i] = 1, b[i] = 2, c[i] = 0;
    while (getchar() == '\n') {
        double times[5];
        times[0] = omp_get_wtime();
        LOOP(c, a[i], LOAD(a + i))
        times[1] = omp_get_wtime();
        LOOP(b, s * c[i], MUL(s, LOAD(c + i)))
        times[2] = omp_get_wtime();
        LOOP(c, a[i] + b[i], ADD(LOAD(a + i), LOAD(b + i)))
        times[3] = omp_get_wtime();
        LOOP(a, b[i] + s * c[i], ADD(LOAD(b + i), MUL(s, LOAD(c + i))))
        times[4] = omp_get_wtime();
        int bytes[] = {16, 16, 24, 24};
        for (int at = 0; at < 4; at++) printf("%.4f ", bytes[at] * (double)elements / 1e9 / (times[at + 1] - times[at]));
        printf("\n");
        fflush(stdout);
        expected_c = expected_a;
        expected_b = s * expected_c;
        expected_c = expected_a + expected_b;
        expected_a = expected_b + s * expected_c;
    }
    double error = 0;
    for (long i = 0; i < elements; i++)
        error = fmax(error, fmax(fabs(a[i] / expected_a - 1), fmax(fabs(b[i] / expected_b - 1), fabs(c[i] / expected_c - 1))));
    return !(error < 1e-13);
}

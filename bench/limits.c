/* SPDX-License-Identifier: Apache-2.0 */
/* bench_limits: the machine's limits, measured now (bench.h says what each is). */
#include "bench.h"

int main(int argc, char **argv)
{
    bench b;
    bench_open(&b, argc, argv);
    bench_close(&b);
    return 0;
}

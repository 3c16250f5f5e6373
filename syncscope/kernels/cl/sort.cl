// Stable merge sort of rows: runs of RUN elements by insertion, then pairs of runs merged, each item making a segment.
// Keys carry their places. NaN counts as the largest.

#if DESCENDING
#define BEFORE(a, b) ((a) != (a) ? (b) == (b) : (a) > (b))
#else
#define BEFORE(a, b) ((b) != (b) ? (a) == (a) : (a) < (b))
#endif

__kernel void merge_sort_runs(__global const T *in, long at, __global T *keys, __global long *places, uint rows, uint length,
                              uint runs) {
    const uint i = get_global_id(0);
    if (i >= rows * runs) return;
    const uint row = i / runs, begin = (i % runs) * RUN, count = min((uint)RUN, length - begin);
    const long base = (long)row * length + begin;
    T key[RUN];
    int place[RUN];
    for (uint k = 0; k < count; k++) {
        const T x = in[at + base + k];
        int j = k;
        for (; j > 0 && BEFORE(x, key[j - 1]); j--) {
            key[j] = key[j - 1];
            place[j] = place[j - 1];
        }
        key[j] = x;
        place[j] = k;
    }
    for (uint k = 0; k < count; k++) {
        keys[base + k] = key[k];
        places[base + k] = begin + place[k];
    }
}

// Of the merged pair of runs, how many of the first `diagonal` elements come from the left one (which wins among equals).
static inline uint merge_split(__global const T *left, uint n, __global const T *right, uint m, uint diagonal) {
    uint low = diagonal > m ? diagonal - m : 0, high = min(diagonal, n);
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (BEFORE(right[diagonal - 1 - middle], left[middle])) high = middle;
        else low = middle + 1;
    }
    return low;
}

__kernel void merge_sort_merge(__global const T *keys, __global const long *places, __global T *out, __global long *out_places,
                               uint rows, uint length, uint run, uint segment, uint segments) {
    const uint i = get_global_id(0);
    if (i >= rows * segments) return;
    const uint row = i / segments, begin = (i % segments) * segment, end = min(begin + segment, length);
    const uint first = begin / (2 * run) * (2 * run);
    const uint n = min(run, length - first), m = min(2 * run, length - first) - n;
    const long base = (long)row * length;
    keys += base + first;
    places += base + first;
    out += base;
    out_places += base;
    uint a = merge_split(keys, n, keys + n, m, begin - first), b = begin - first - a;
    uint k = begin;
    while (k < end && a < n && b < m)
        // So many can be taken before a run may end: which one from is never known ahead, so there is no branch on it.
        for (uint left = min(end - k, min(n - a, m - b)); left; left--, k++) {
            const uint second = BEFORE(keys[n + b], keys[a]), from = second ? n + b : a;
            out[k] = keys[from];
            out_places[k] = places[from];
            a += 1 - second;
            b += second;
        }
    for (uint from = a < n ? a : n + b; k < end; k++, from++) {
        out[k] = keys[from];
        out_places[k] = places[from];
    }
}

// 1 where a sorted element differs from the one before it.
__kernel void unique_flags(__global const T *sorted, long at, __global long *flags, uint length) {
    const uint i = get_global_id(0);
    if (i < length) flags[i] = i == 0 || sorted[at + i] != sorted[at + i - 1];
}

// `ranks` is the running sum of the flags; the first element of each run is written, and where it starts.
__kernel void unique_scatter(__global const T *sorted, long at, __global const long *ranks, __global T *out, __global long *starts,
                             uint length) {
    const uint i = get_global_id(0);
    if (i >= length) return;
    const long rank = ranks[i] - 1;
    if (i == 0 || ranks[i - 1] != ranks[i]) {
        out[rank] = sorted[at + i];
        starts[rank] = i;
    }
}

__kernel void unique_inverse(__global const long *ranks, __global const long *places, __global long *inverse, uint length) {
    const uint i = get_global_id(0);
    if (i < length) inverse[places[i]] = ranks[i] - 1;
}

__kernel void unique_counts(__global const long *starts, __global long *counts, uint found, uint length) {
    const uint i = get_global_id(0);
    if (i < found) counts[i] = (i + 1 < found ? starts[i + 1] : length) - starts[i];
}

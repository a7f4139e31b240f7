package stats

import (
	"math/bits"
	"math/rand/v2"
)

// Shuffle puts xs into an order that depends on seed and stream only, and is the
// same for ever: a stored run must give the same plan in a later version. So it
// stands on PCG's output, which math/rand/v2 promises, and not on rand.Shuffle,
// which it does not. Different streams of one seed are independent orders.
func Shuffle[T any](xs []T, seed, stream uint64) {
	// Neighbouring streams are spread first (splitmix64's finaliser), since PCG
	// takes them as the low half of its state.
	source := rand.NewPCG(seed, mix(stream))
	for i := len(xs) - 1; i > 0; i-- {
		j := below(source, uint64(i+1))
		xs[i], xs[j] = xs[j], xs[i]
	}
}

// below is uniform in 0…n-1 (Lemire 2019: the high half of a product, values
// that would make some results more likely thrown away).
func below(source *rand.PCG, n uint64) uint64 {
	high, low := bits.Mul64(source.Uint64(), n)
	for low < n && low < -n%n {
		high, low = bits.Mul64(source.Uint64(), n)
	}
	return high
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

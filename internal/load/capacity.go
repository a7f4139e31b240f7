package load

import (
	"context"
	"errors"

	"hakaru"
)

// FindCapacity searches for the highest rate at which the request holds spec's
// conditions. step, where given, is told of each step when it is over.
func FindCapacity(ctx context.Context, req hakaru.HTTPRequest, spec hakaru.CapacitySpec, w hakaru.Window, emit func(hakaru.Bucket), step func(hakaru.CapacityStep)) (hakaru.LoadReport, error) {
	return hakaru.LoadReport{}, named(req, errors.New("the search for the capacity is not built yet"))
}

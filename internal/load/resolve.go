package load

import (
	"context"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/load/job"
)

// resolve finds the one address that a load connects to.
func resolve(ctx context.Context, req hakaru.HTTPRequest, to endpoint.Endpoint) (target *job.Target, resolved []string, err error) {
	return &job.Target{Network: to.Network, Address: to.Address}, nil, nil
}

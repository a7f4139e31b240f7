package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/load"
	"hakaru/internal/unit"
)

// loadCommand is `hakaru load`: the load engine by itself.
func (d *door) loadCommand() *cobra.Command {
	req := hakaru.HTTPRequest{Method: "GET", KeepAlive: true}
	var length, warmUp time.Duration
	cmd := &cobra.Command{
		Use:   "load URL",
		Short: "Send load to a service and report latencies, errors and rates",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.URL = args[0]
			w := hakaru.Window{WarmUp: warmUp, Length: length}
			if length <= 0 {
				w.Length = 10 * time.Second
				if req.Requests > 0 {
					w.Length = 24 * time.Hour
				}
			}
			report, err := load.Stream(cmd.Context(), req, w, nil)
			if t := report.Tally; t != nil {
				h, decodeErr := latency.Decode(t.Latency)
				if decodeErr != nil {
					return decodeErr
				}
				fmt.Fprintf(d.stdout, "%d good, %d bad in %s: %s; p50 %s, p99 %s, max %s; CPU %s of %d (%s engine, %d threads)\n",
					t.Good, t.Bad, unit.Duration(t.Took), unit.Rate(float64(t.Good)/t.Took.Seconds()),
					unit.Duration(h.Quantile(0.5)), unit.Duration(h.Quantile(0.99)), unit.Duration(h.Max()),
					unit.Seconds(t.CPU), t.CPUs, t.Engine, t.Threads)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&req.Connections, "connections", "c", 64, "keep this many connections busy")
	flags.Uint64VarP(&req.Requests, "requests", "n", 0, "end after so many requests")
	flags.DurationVarP(&length, "duration", "d", 0, "send for so long (default 10s)")
	flags.DurationVar(&warmUp, "warm-up", 0, "send so long before measuring")
	flags.IntVar(&req.Threads, "threads", 0, "send from so many threads")
	flags.StringVar(&req.Engine, "engine", "", "epoll or goroutines (default: the one that fits)")
	return cmd
}

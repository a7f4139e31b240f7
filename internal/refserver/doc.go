// Package refserver is the built-in service, `hakaru serve`: a small prefork
// HTTP server whose speed can be written down beforehand, so that everything
// that measures can be tried against a known answer.
//
// It takes a config.Config and runs a master with N worker processes on one
// shared listener (internal/listen), each answering T requests at once. The
// laws are in docs/serve.md: without overhead, P processes of T threads with a
// wait w and a CPU cost c answer P·T/(w+c) a second, and never more than CPUs/c.
//
// It does not read the process's arguments, environment or signals (Options
// hands them in), does not exit, and is not meant to serve anyone but a test.
// Linux only.
package refserver

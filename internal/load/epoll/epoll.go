// Package epoll is the engine for plain HTTP on Linux: a few threads, each with
// its own connections, its own epoll and its own part of the recorder, so that
// they share nothing but the clock. It speaks to TCP and unix sockets; TLS and
// other systems are package goroutines' business.
//
// A request costs one send and one receive. Events are edge triggered, so that
// epoll is told of a connection once; the next request is sent from within the
// event that brought the answer; one reading of the clock is the end of the one
// and the beginning of the other. That is the floor: what is left is the kernel's
// work on a bare write and read. Tried and dropped: io_uring (nothing consistent
// over this), level triggering and read/write in place of recv/send (dearer).
package epoll

// Engine is a job.Engine.
type Engine struct{}

// Package epoll is the engine for plain HTTP on Linux: a few threads, each with
// its own connections, its own epoll and its own part of the recorder, so that
// they share nothing but the clock. It speaks to TCP and unix sockets; TLS and
// other systems are package goroutines' business.
//
// A request costs one send and one receive. Events are edge triggered, so that
// epoll is told of a connection once. In a closed loop all answers that have come
// are read before the next requests are sent, and a request is due when it is sent:
// what the loop itself takes between the two is in no latency. That is the floor:
// what is left is the kernel's work on a bare write and read. Tried and dropped:
// io_uring (nothing consistent over this), level triggering and read/write in place
// of recv/send (dearer), each next request from within the event of the answer
// (dearer, and others' answers wait to be read).
package epoll

// Engine is a job.Engine.
type Engine struct{}

package refserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"hakaru/internal/listen"
	"hakaru/internal/refserver/config"
)

// Status is the answer of GET /-/status: what is in force, read from the
// workers and the kernel where they know better than the configuration.
type Status struct {
	PID            int    `json:"pid"`         // of the master
	AnsweredBy     int    `json:"answered_by"` // pid of the worker that wrote this
	Generation     int    `json:"generation"`  // of that worker; one more with each graceful restart
	Processes      int    `json:"processes"`   // workers that live
	AskedProcesses int    `json:"asked_processes"`
	Threads        int    `json:"threads"`
	Log            string `json:"log"`
	MaxRequests    uint64 `json:"max_requests"`
	// Durations are seconds: this is read by people and by proofs.
	MaxLifetime  float64           `json:"max_lifetime_seconds"`
	Jitter       float64           `json:"jitter"`
	Backlog      int               `json:"backlog"` // as the kernel has it: cut to net.core.somaxconn
	AskedBacklog int               `json:"asked_backlog"`
	Listen       []string          `json:"listen"`
	Handler      string            `json:"handler"`
	Wait         float64           `json:"wait_seconds"`
	CPU          float64           `json:"cpu_seconds"`
	Work         int               `json:"work_rounds"`
	Stall        float64           `json:"stall_seconds"`
	StallEvery   float64           `json:"stall_every_seconds"`
	ErrorRate    float64           `json:"error_rate"`
	Alloc        int64             `json:"alloc_bytes"`
	Grace        float64           `json:"grace_seconds"`
	Started      uint64            `json:"workers_started"` // since the master began
	Settings     map[string]string `json:"settings"`        // each under its own name, as it would be written
	Workers      []WorkerStatus    `json:"workers"`
}

// WorkerStatus is one worker process.
type WorkerStatus struct {
	PID         int       `json:"pid"`
	State       string    `json:"state"` // starting, live, draining
	Generation  int       `json:"generation"`
	Requests    uint64    `json:"requests"` // answered
	Connections uint64    `json:"connections"`
	Busy        uint64    `json:"busy"` // requests in work or waiting for a thread
	Started     time.Time `json:"started"`
}

func (w *worker) status() Status {
	c := &w.setup.Config
	s := Status{
		PID: w.setup.Master, AnsweredBy: int(w.me.pid.Load()), Generation: w.setup.Generation,
		AskedProcesses: int(w.board.asked.Load()), Threads: cap(w.handler.threads), Log: c.Log,
		MaxRequests: c.MaxRequests, MaxLifetime: c.MaxLifetime.Seconds(), Jitter: c.Jitter,
		AskedBacklog: c.Backlog, Listen: w.setup.Listen, Handler: c.Handler,
		Wait: c.Wait.Seconds(), CPU: c.CPU.Seconds(), Work: c.Work, Stall: c.Stall.Seconds(), StallEvery: c.StallEvery.Seconds(),
		ErrorRate: c.ErrorRate, Alloc: c.Alloc, Grace: c.Grace.Seconds(), Started: w.board.started.Load(),
		Backlog:  w.queue(),
		Settings: map[string]string{}, Workers: []WorkerStatus{},
	}
	for _, k := range config.Keys() {
		s.Settings[k.Name] = k.Get(c)
	}
	used := w.board.used()
	for i := range used {
		slot := &used[i]
		state := slot.state.Load()
		if state == stateFree {
			continue
		}
		if state == stateLive {
			s.Processes++
		}
		s.Workers = append(s.Workers, WorkerStatus{
			PID: int(slot.pid.Load()), State: stateName(state), Generation: int(slot.generation.Load()),
			Requests: slot.requests.Load(), Connections: slot.connections.Load(), Busy: slot.busy.Load(),
			Started: time.Unix(0, int64(slot.started.Load())).UTC(),
		})
	}
	return s
}

// queue is read when asked for, as a restart can change it.
func (w *worker) queue() int {
	length := w.setup.Config.Backlog
	err := w.acceptors[0].raw.Control(func(fd uintptr) { length = listen.QueueLength(int(fd), length) })
	if err != nil {
		return 0 // draining: this worker does not listen any more
	}
	return length
}

func stateName(state uint64) string {
	switch state {
	case stateStarting:
		return "starting"
	case stateLive:
		return "live"
	case stateDraining:
		return "draining"
	}
	return "free"
}

func writeStatus(w http.ResponseWriter, s Status) {
	body, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client's loss
}

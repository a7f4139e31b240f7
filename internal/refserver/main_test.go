package refserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"hakaru/internal/refserver/config"

	"go.uber.org/goleak"
)

// The test program is the master and the worker of the tests that need real
// processes, by what this variable says.
const roleVariable = "HAKARU_REFSERVER_TEST_ROLE"

// masterVariable is the Config of a role "master", as JSON.
const masterVariable = "HAKARU_REFSERVER_TEST_CONFIG"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	var err error
	switch role {
	case "worker":
		err = RunWorker(context.Background(), WorkerOptions{Stderr: os.Stderr, Signals: signals})
	case "dies":
		err = errors.New("dies at once")
	case "master":
		var cfg config.Config
		if err = json.Unmarshal([]byte(os.Getenv(masterVariable)), &cfg); err != nil {
			break
		}
		if pid, own := os.LookupEnv("LISTEN_PID"); own && pid == "self" {
			os.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid()))
		}
		err = Run(context.Background(), cfg, Options{
			Args: []string{"worker"}, Env: workerEnv(os.Environ(), "worker"), Stderr: os.Stderr, Signals: signals,
			Ready: func(addresses []string) { fmt.Println("ready", strings.Join(addresses, " ")) },
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func workerEnv(env []string, role string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, roleVariable+"=") {
			out = append(out, e)
		}
	}
	// The race detector makes each process sleep a second before it ends.
	return append(out, roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
}

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/service/registry"
)

// secretive has a secret in the address of a proof, which fails: its evidence
// names the address.
const secretive = `
service:
  kind: serve
  run: hakaru serve --listen {http}
  env: {API_TOKEN: hunter2}
  ports: [http]
factors: {processes: [1, 2]}
load: {http: {url: "http://{http}/20", connections: 2, warm_up: 0s, duration: 500ms}}
prove: {processes: [{http: "http://{http}/20?token=hunter2", contains: nothing}]}
goal: cpu_per_request
design: {blocks: 2, calibrate: 1}
`

// TestSecretsAreNotSaid: neither report nor what is said on standard error,
// which ends up in logs, holds a secret of the experiment.
func TestSecretsAreNotSaid(t *testing.T) {
	s := newSite(t, secretive)
	for _, args := range [][]string{
		{"run", "--dry-run", "app.yaml"}, {"run", "app.yaml"}, {"try", "app.yaml"}, {"report"}, {"report", "--format", "json"}, {"show", "last", "1"},
	} {
		said, _ := s.command(args...).CombinedOutput() // that the answer is no is no matter here
		if strings.Contains(string(said), "hunter2") {
			t.Errorf("hakaru %s says the secret:\n%s", strings.Join(args, " "), said)
		}
		if !strings.Contains(string(said), "processes") {
			t.Errorf("hakaru %s says nothing of the proof:\n%s", strings.Join(args, " "), said)
		}
	}
}

// TestSecretsOfUndoAreNotSaid: what could not be put back is told by every
// command, with the command to run by hand and what it wrote.
func TestSecretsOfUndoAreNotSaid(t *testing.T) {
	s := newSite(t, secretive)
	files, err := registry.Open(filepath.Join(s.dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := registry.NewID()
	if err != nil {
		t.Fatal(err)
	}
	rec := registry.Record{
		Format: registry.Format, ID: id, Boot: "another", Dir: filepath.Join(s.dir, "tmp", "hakaru-"+id),
		Units: []registry.Unit{{Service: "db", Undo: &registry.Undo{
			Words:   []string{"sh", "-c", "echo access denied with password=hunter2; exit 1", "mysql", "-uroot", "-phunter2"},
			Timeout: 10 * time.Second, Ready: hakaru.Ready{Connect: "127.0.0.1:1"},
		}}},
	}
	if err := files.Write(rec, true); err != nil {
		t.Fatal(err)
	}
	for range 4 { // the last time it is not tried
		said, err := s.command("list").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		contains(t, string(said), "service db was changed", "NOT put back", "run by hand: ")
		if strings.Contains(string(said), "hunter2") {
			t.Errorf("the secret is said:\n%s", said)
		}
	}
	said, _ := s.command("run", "app.yaml").CombinedOutput() // it refuses
	contains(t, string(said), "error: ", "NOT put back")
	if strings.Contains(string(said), "hunter2") {
		t.Errorf("the secret is said:\n%s", said)
	}
}

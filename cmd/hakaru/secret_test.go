package main

import (
	"strings"
	"testing"
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
		{"run", "app.yaml"}, {"try", "app.yaml"}, {"report"}, {"report", "--format", "json"}, {"show", "last", "1"},
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

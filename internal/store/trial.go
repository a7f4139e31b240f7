package store

import (
	"bytes"
	"compress/zlib"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"hakaru"
)

// Append stores a finished trial and what its services wrote, in one
// transaction that is on the disk when Append returns. r.Seq is given by the
// caller, from 1; r.Run becomes id. A trial that is stored already, by its
// number or by block, variant and attempt, is refused with ErrDuplicate.
func (s *Store) Append(ctx context.Context, id string, r hakaru.Result, outputs []hakaru.Output) error {
	what := fmt.Sprintf("trial %d (block %d, variant %s, attempt %d) of run %s", r.Seq, r.Block, r.Variant, r.Attempt, id)
	doing := "write " + what + " to"
	if r.Seq < 1 {
		return fmt.Errorf("store %s: trials are numbered from 1", what)
	}
	r.Run = id
	var buckets []byte
	var err error
	if all := withOpen(&r); len(all) > 0 {
		if buckets, err = packJSON(all); err != nil {
			return fmt.Errorf("store %s: %w", what, err)
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("store %s: %w", what, err)
	}

	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return explain(doing, s.path, err)
	}
	defer tx.Rollback() // after Commit: says ErrTxDone, nothing to do
	var n int64
	err = tx.QueryRowContext(ctx, "SELECT n FROM run WHERE id = ?", id).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return s.missing(id)
	}
	if err != nil {
		return explain(doing, s.path, err)
	}
	_, err = tx.ExecContext(ctx,
		"INSERT INTO trial (run, seq, block, variant, attempt, void, body, buckets) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		n, r.Seq, r.Block, r.Variant, r.Attempt, r.Void != nil, string(body), buckets)
	if duplicate(err) {
		return &Error{doing, s.path, "", ErrDuplicate}
	}
	if err != nil {
		return explain(doing, s.path, err)
	}
	for i, o := range outputs {
		text, err := deflate([]byte(o.Text))
		if err != nil {
			return fmt.Errorf("store output of %s: %w", what, err)
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO output (run, seq, n, service, cut, text) VALUES (?, ?, ?, ?, ?, ?)",
			n, r.Seq, i, o.Service, o.Cut, text)
		if err != nil {
			return explain(doing, s.path, err)
		}
	}
	return explain(doing, s.path, tx.Commit())
}

// withOpen takes the buckets out of a result: those of the load, and behind them
// those of the open loop after it, whose clock begins anew.
func withOpen(r *hakaru.Result) []hakaru.Bucket {
	all := r.Buckets
	r.Buckets = nil
	if r.Open != nil && len(r.Open.Buckets) > 0 {
		open := *r.Open // the caller's stays as it is
		all = append(all[:len(all):len(all)], open.Buckets...)
		open.Buckets = nil
		r.Open = &open
	}
	return all
}

// putBuckets puts back what withOpen took out.
func putBuckets(r *hakaru.Result, all []hakaru.Bucket) {
	r.Buckets = all
	if r.Open == nil {
		return
	}
	for i := 1; i < len(all); i++ {
		if all[i].At <= all[i-1].At { // both of one bucket are at 0
			r.Buckets, r.Open.Buckets = all[:i:i], all[i:]
			return
		}
	}
}

// row is a trial as it is read.
type row struct {
	body    string
	buckets []byte
}

func (w row) result() (hakaru.Result, error) {
	var r hakaru.Result
	if err := json.Unmarshal([]byte(w.body), &r); err != nil {
		return r, err
	}
	if w.buckets == nil {
		return r, nil
	}
	var all []hakaru.Bucket
	if err := unpackJSON(w.buckets, &all); err != nil {
		return r, err
	}
	putBuckets(&r, all)
	return r, nil
}

// History returns all trials of a run, buckets included, in order of Seq.
func (s *Store) History(ctx context.Context, id string) ([]hakaru.Result, error) {
	return s.results(ctx, id, "SELECT body, buckets FROM trial WHERE run = ? ORDER BY seq")
}

// Trials is History without the buckets: enough for lists and tables, at a
// small part of the cost.
func (s *Store) Trials(ctx context.Context, id string) ([]hakaru.Result, error) {
	return s.results(ctx, id, "SELECT body, NULL FROM trial WHERE run = ? ORDER BY seq")
}

// Trial returns one trial of a run, buckets included, or ErrNotFound.
func (s *Store) Trial(ctx context.Context, id string, seq int) (hakaru.Result, error) {
	all, err := s.results(ctx, id, "SELECT body, buckets FROM trial WHERE run = ? AND seq = ?", seq)
	if err != nil {
		return hakaru.Result{}, err
	}
	if len(all) == 0 {
		return hakaru.Result{}, s.missingTrial(id, seq)
	}
	return all[0], nil
}

func (s *Store) missingTrial(id string, seq int) error {
	return &Error{fmt.Sprintf("find trial %d of run %s in", seq, id), s.path, "`hakaru show " + id + "` lists the trials", ErrNotFound}
}

func (s *Store) results(ctx context.Context, id, query string, args ...any) ([]hakaru.Result, error) {
	doing := "read the trials of run " + id + " from"
	n, err := s.number(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, query, append([]any{n}, args...)...)
	if err != nil {
		return nil, explain(doing, s.path, err)
	}
	all, err := scanAll(rows, func(w *row) []any { return []any{&w.body, &w.buckets} })
	if err != nil {
		return nil, explain(doing, s.path, err)
	}
	results := make([]hakaru.Result, len(all))
	for i, w := range all {
		if results[i], err = w.result(); err != nil {
			return nil, &Error{doing, s.path, adviceDamaged, err}
		}
	}
	return results, nil
}

// Outputs returns what the services wrote during a trial, or ErrNotFound where
// there is no such trial.
func (s *Store) Outputs(ctx context.Context, id string, seq int) ([]hakaru.Output, error) {
	doing := fmt.Sprintf("read the outputs of trial %d of run %s from", seq, id)
	n, err := s.number(ctx, id)
	if err != nil {
		return nil, err
	}
	var known bool
	if err := s.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM trial WHERE run = ? AND seq = ?)", n, seq).Scan(&known); err != nil {
		return nil, explain(doing, s.path, err)
	}
	if !known {
		return nil, s.missingTrial(id, seq)
	}
	rows, err := s.db.QueryContext(ctx, "SELECT service, cut, text FROM output WHERE run = ? AND seq = ? ORDER BY n", n, seq)
	if err != nil {
		return nil, explain(doing, s.path, err)
	}
	type line struct {
		hakaru.Output
		text []byte
	}
	lines, err := scanAll(rows, func(l *line) []any { return []any{&l.Service, &l.Cut, &l.text} })
	if err != nil {
		return nil, explain(doing, s.path, err)
	}
	outputs := make([]hakaru.Output, 0, len(lines))
	for _, l := range lines {
		text, err := inflate(l.text)
		if err != nil {
			return nil, &Error{doing, s.path, adviceDamaged, err}
		}
		l.Text = string(text)
		outputs = append(outputs, l.Output)
	}
	return outputs, nil
}

// number returns the row of a run.
func (s *Store) number(ctx context.Context, id string) (int64, error) {
	var n int64
	err := s.db.QueryRowContext(ctx, "SELECT n FROM run WHERE id = ?", id).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, s.missing(id)
	}
	if err != nil {
		return 0, explain("find run "+id+" in", s.path, err)
	}
	return n, nil
}

func deflate(b []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := zlib.NewWriter(&buf)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func inflate(b []byte) (_ []byte, err error) {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := r.Close(); err == nil {
			err = e
		}
	}()
	return io.ReadAll(r)
}

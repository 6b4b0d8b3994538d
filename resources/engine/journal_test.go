package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
)

// damage replaces a journal with a pending refresh of svc#s by a text.
func damage(t *testing.T, w *world, text string) (j *engine.FileJournal, path string) {
	t.Helper()
	dir := t.TempDir()
	j = engine.NewFileJournal(w.opts.Env.Host, dir, "test.yaml")
	if err := j.Add(t.Context(), model.Ref{Type: "svc", Name: "s"}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "owed", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", err, files)
	}
	if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.opts.Journal = j
	return j, files[0]
}

var damages = map[string]string{
	"empty":                 "",
	"cut short":             `{"manifest":"test.yaml","owed":["sv`,
	"not of muster":         "{}",
	"of another manifest":   `{"manifest":"other.yaml","owed":[]}`,
	"with a wrong debt":     `{"manifest":"test.yaml","owed":["svc"]}`,
	"with something behind": `{"manifest":"test.yaml","owed":["svc#s"]}{"manifest":"test.yaml","owed":["svc#t"]}`,
}

// TestDamagedJournal checks that a damaged journal refreshes all subscribers once, and that its
// content is saved.
func TestDamagedJournal(t *testing.T) {
	for name, text := range damages {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			j, path := damage(t, w, text)
			for _, n := range []string{"s", "t", "u"} {
				w.m.set(n, "x")
			}
			g := w.graph("thing a value=1", "svc s value=x subscribe=thing#a", "svc t value=x fail_at=apply times=1 subscribe=thing#a", "svc u value=x", "thing d subscribe=thing#a")
			w.m.set("a", "1")

			w.opts.Env.Scope.Noop = true
			run := w.run(g)
			w.outcomes("thing#a stable", "svc#s noop", "svc#t noop", "svc#u stable", "thing#d stable")
			if got, err := os.ReadFile(path); err != nil || string(got) != text || !run.OK() {
				t.Fatalf("noop made of it %q, %v: %v", got, err, run.Errors)
			}

			w.opts.Env.Scope.Noop = false
			run = w.run(g)
			w.outcomes("thing#a stable", "svc#s refreshed", "svc#t failed", "svc#u stable", "thing#d stable")
			if len(run.Errors) != 1 || !strings.Contains(run.Errors[0], "svc#t") {
				t.Fatal(run.Errors)
			}
			contains(t, w.log.String(), "level=WARN", "the journal of pending refreshes is damaged", path)
			aside, err := filepath.Glob(path + ".damaged-*")
			if err != nil || len(aside) != 1 {
				t.Fatalf("%v: set aside are %v", err, aside)
			}
			if got, err := os.ReadFile(aside[0]); err != nil || string(got) != text {
				t.Fatalf("set aside is %q: %v", got, err)
			}
			if owed, err := j.Pending(); err != nil || len(owed) != 1 || owed[0].Name != "t" {
				t.Fatalf("%v, owed %v", err, owed)
			}

			if run = w.run(g); !run.OK() {
				t.Fatal(run.Errors)
			}
			w.outcomes("thing#a stable", "svc#s stable", "svc#t refreshed", "svc#u stable", "thing#d stable")
			w.run(g)
			w.outcomes("thing#a stable", "svc#s stable", "svc#t stable", "svc#u stable", "thing#d stable")
		})
	}
}

func TestDamagedJournalIsNeverOverwritten(t *testing.T) {
	ref := model.Ref{Type: "svc", Name: "s"}
	for name, text := range damages {
		t.Run(name, func(t *testing.T) {
			j, path := damage(t, newWorld(t), text)
			_, err := j.Pending()
			for what, err := range map[string]error{"owed": err, "owe": j.Add(t.Context(), ref), "settle": j.Clear(t.Context(), ref)} {
				if !errors.Is(err, engine.ErrDamagedJournal) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("it holds %q: %v", got, err)
			}
		})
	}
}

// TestJournalThatCannotBeRead checks that resources without subscribers still change, and that no
// change with subscribers is made.
func TestJournalThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	_, path := damage(t, w, "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	w.m.set("s", "x")
	run := w.run(w.graph("thing a value=1", "thing b value=1", "svc s value=x subscribe=thing#a"))
	w.outcomes("thing#a failed", "thing#b changed", "svc#s stable")
	contains(t, strings.Join(run.Errors, "\n"), "reading the journal of pending refreshes", "the refresh of its subscribers cannot be recorded", path)
}

// TestDebtsOfABatch checks a batch in which one resource changed and another did not.
func TestDebtsOfABatch(t *testing.T) {
	cases := map[string]struct {
		lines []string
		cut   string   // the run stops after the change of this resource
		want  []string // the outcome of svc#s in each run
	}{
		"the first fails, the second changes": {
			lines: []string{"wide a value=1 fail_at=apply", "wide b value=1", "svc s value=x subscribe=wide#a,wide#b"},
			cut:   "b", want: []string{"notrun", "refreshed", "stable"},
		},
		"done together, though it said otherwise": {
			lines: []string{"many a value=1 fail_at=apply", "many b value=1", "svc s value=x subscribe=many#a,many#b"},
			cut:   "b", want: []string{"notrun", "refreshed", "stable"},
		},
		"one fails and changes nothing": {
			lines: []string{"wide a value=1 fail_at=apply", "wide b value=1", "wide ok", "svc s value=x subscribe=wide#a,wide#ok"},
			want:  []string{"stable", "stable"},
		},
		"nothing came of it": {
			lines: []string{"wide a value=1 fail_at=unchanged", "wide b value=1", "svc s value=x subscribe=wide#a"},
			want:  []string{"stable", "stable"},
		},
		"nothing came of it, alone": {
			lines: []string{"thing a value=1 fail_at=unchanged", "svc s value=x subscribe=thing#a"},
			want:  []string{"stable", "stable"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.m.set("s", "x")
			w.opts.Journal = engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
			stop := w.stoppable()
			w.hook = func(event, name string) {
				if event == "apply" && name == c.cut {
					stop()
				}
			}
			g := w.graph(c.lines...)
			for _, want := range c.want {
				w.run(g)
				if got := w.txs["svc#s"].Outcome(); string(got) != want {
					t.Fatalf("%s, not %s: %v", got, want, w.order)
				}
				w.ctx, w.hook = nil, nil
			}
			if owed, err := w.opts.Journal.Pending(); err != nil || len(owed) > 0 {
				t.Fatalf("%v, owed %v", err, owed)
			}
		})
	}
}

package scaffold_test

import (
	"os"
	"path/filepath"
	"testing"
)

// The pending commands are recorded before the file exists: after a kill during post, the file looks
// unchanged, but its commands still run.
func TestPostIsOwedOnceTheFileIsThere(t *testing.T) {
	s := newSubject(t, put("src/f", "1", "src/g", "2"), "post", post("*", "sh -c 'true {}'"))
	check(t, s.apply())
	records := filepath.Join(s.env.Host.StateDir(), "scaffolds")
	put("out/f", "drifted", "out/g", "drifted")(t, s.dir)
	// The same commands, which now also keep the record as it is while they run.
	during := t.TempDir()
	tools := t.TempDir()
	check(t, os.WriteFile(filepath.Join(tools, "sh"), []byte("#!/bin/sh\ncp "+records+"/* "+during+"\n"), 0o700))
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	check(t, s.apply())
	s.says("after post", "")
	check(t, os.RemoveAll(records))
	check(t, os.Rename(during, records))
	s.says("after a kill", changed(2))
}

// The error also names a command that creates other files of the target.
func TestPostMakesOtherFiles(t *testing.T) {
	s := newSubject(t, put("src/f", "1"), "purge", true, "post", post("f", "sh -c 'touch {}.made'"))
	want := "still different: " + s.dir + "/out/f.made (templates must give the same every time, and post must change no other file of the target)"
	if err := s.apply(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

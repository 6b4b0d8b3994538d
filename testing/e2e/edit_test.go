package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestEditAsksAgain: on a terminal the editor opens an invalid text again. Without confirmation the text is
// saved and not pushed.
func TestEditAsksAgain(t *testing.T) {
	dir := t.TempDir()
	server := []string{"--server", natstest.Start(t).URL()}
	muster(t, dir, append([]string{"fleet", "init"}, server...)...)
	manifest := filepath.Join(dir, "motd.yaml")
	write(t, manifest, "muster:\n  resources:\n    - file:\n        - /etc/motd: {content: hello, owner: root, group: root, mode: \"0644\"}\n")
	muster(t, dir, append([]string{"fleet", "push", "--group", "web", manifest}, server...)...)
	// The first time it makes a mistake, and the second time it corrects that.
	editor := filepath.Join(dir, "editor.sh")
	write(t, editor, "if grep -q contnet \"$1\"; then sed -i s/contnet/content/ \"$1\"; else sed -i 's/content: hello/contnet: second/' \"$1\"; fi\n")
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"n", "y"} {
		terminal, text, done := editing(t, append([]string{"fleet", "edit", "motd"}, server...), "TMPDIR="+temp, "EDITOR=sh "+editor)
		await(t, "it asks whether to edit again", func() bool { return strings.Contains(text.String(), "Edit it again? [Y/n]") })
		if !strings.Contains(text.String(), "motd.yaml:4:23: unknown property `contnet`") {
			t.Errorf("no place of the mistake:\n%s", text)
		}
		say(t, terminal, "\n")
		await(t, "it asks before it pushes", func() bool {
			return strings.Contains(text.String(), "this replaces revision 1 of group.web.motd. Continue? [y/N]")
		})
		say(t, terminal, answer+"\n")
		err := done()
		left, readErr := filepath.Glob(filepath.Join(temp, "muster-edit-*", "motd.yaml"))
		pushed := strings.Contains(text.String(), "group.web.motd revision 2 sha256-")
		if (err == nil) != (answer == "y") || pushed != (answer == "y") || (len(left) == 0) != (answer == "y") || readErr != nil {
			t.Errorf("answer %s: %v, %v\n%s", answer, err, left, text)
		}
		for _, file := range left {
			kept, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(kept), "content: second") || !strings.Contains(text.String(), "your edited text is in "+file) {
				t.Errorf("kept %s, %v\n%s", kept, err, text)
			}
			if err := os.RemoveAll(filepath.Dir(file)); err != nil {
				t.Error(err)
			}
		}
	}
	if shown := muster(t, dir, append([]string{"fleet", "show", "motd"}, server...)...); !strings.Contains(shown, "content: second") {
		t.Errorf("assigned is\n%s", shown)
	}
}

func say(t *testing.T, terminal *os.File, words string) {
	t.Helper()
	if _, err := terminal.WriteString(words); err != nil {
		t.Fatal(err)
	}
}

// editing starts muster on a terminal. The function waits for its end.
func editing(t *testing.T, args []string, env ...string) (terminal *os.File, text *output, done func() error) {
	t.Helper()
	terminal, program := hosttest.Terminal(t)
	text = &output{}
	cmd := exec.CommandContext(t.Context(), "muster", args...)
	cmd.Env = append(append(os.Environ(), "VISUAL="), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := program.Close(); err != nil {
		t.Error(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(text, terminal) // ends with an error, as the terminal does
	}()

	return terminal, text, func() error {
		err := cmd.Wait()
		<-read

		return err
	}
}

// TestEditSignsWhatItShows: before signing, edit shows the value and terms that another user put into the
// bucket.
func TestEditSignsWhatItShows(t *testing.T) {
	dir := t.TempDir()
	server := []string{"--server", natstest.Start(t).URL()}
	muster(t, dir, append([]string{"fleet", "init"}, server...)...)
	manifest, key := filepath.Join(dir, "motd.yaml"), filepath.Join(dir, "alice.nk")
	write(t, manifest, "muster:\n  resources:\n    - file:\n        - /etc/motd: {content: hello, owner: root, group: root, mode: \"0644\"}\n")
	muster(t, dir, "trust", "key", "new", key)
	muster(t, dir, append([]string{"fleet", "push", "--group", "web", "--priority", "7", manifest}, server...)...)
	// The second time it is her own that she signs.
	for i, edit := range []string{"s/hello/second/", "s/second/third/"} {
		shown := i == 0
		terminal, text, done := editing(t, append([]string{"fleet", "edit", "motd", "--sign-key", key}, server...), "TMPDIR="+dir, "EDITOR=sed -i "+edit)
		await(t, "it asks before it signs", func() bool { return strings.Contains(text.String(), "Continue? [y/N]") })
		if strings.Contains(text.String(), "has no valid signature from the given keys; your signature will cover all of its content") != shown || strings.Contains(text.String(), "priority: 7") != shown {
			t.Errorf("%s: %s", edit, text)
		}
		say(t, terminal, "y\n")
		if err := done(); err != nil {
			t.Errorf("%s: %v\n%s", edit, err, text)
		}
	}
	if listed := muster(t, dir, append([]string{"fleet", "show", "motd", "--history"}, server...)...); strings.Count(listed, " O") != 2 {
		t.Errorf("not signed:\n%s", listed)
	}
}

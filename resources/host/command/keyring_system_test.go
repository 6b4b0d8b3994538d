//go:build system

package command

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// TestSystemSessionKeyringOfAnotherUser starts a command of another user on a thread with a key in its session
// keyring: prepared as in a run, the command does not possess the key.
func TestSystemSessionKeyringOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root")
	}
	const key = "muster:hidden"
	c := Command{As: &Account{Name: "ann", UID: 54321, GID: 54321}}
	possessed := func(prepare func(Command) error) bool {
		var out strings.Builder
		cmd := exec.Command("cat", "/proc/keys")
		cmd.SysProcAttr, cmd.Stdout = attributes(c, nil), &out
		err := paths.OnThread(func() error {
			if _, _, errno := unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); errno != 0 {
				return errno
			}
			if _, err := unix.AddKey("user", key, []byte("hidden"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
				return err
			}
			if err := prepare(c); err != nil {
				return err
			}
			return cmd.Start()
		})
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(out.String(), key)
	}
	if !possessed(func(Command) error { return nil }) {
		t.Error("the key is not found where nothing is prepared")
	}
	if possessed(New(nil).prepareThread) {
		t.Error("the command possesses the key")
	}
}

package writers_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/actor"
)

// ugly is what a process may call itself: sequences of a terminal and a line end.
const ugly = "\x1b[31m\nroot\xff"

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"writer": playWriter})
}

// playWriter performs an action on a file, reports it, and holds the file open until its input ends.
func playWriter() error {
	what, path := os.Args[1], os.Args[2]
	what, another := strings.CutSuffix(what, " as another")
	var err error
	if another {
		err = os.WriteFile("/proc/self/comm", []byte(ugly), 0)
	}
	if err != nil {
		return err
	}
	switch what {
	case "hold":
		_, err = unix.Open(path, unix.O_RDWR, 0)
	case "hold for reading":
		_, err = unix.Open(path, unix.O_RDONLY, 0)
	case "write":
		err = os.WriteFile(path, []byte("drift"), 0o644)
	case "replace":
		err = os.WriteFile(path+".new", []byte("drift"), 0o644)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
	case "change mode":
		err = os.Chmod(path, 0o600)
	case "remove":
		err = os.Remove(path)
	default:
		err = fmt.Errorf("unknown %s", what)
	}
	if err != nil {
		return err
	}
	actor.Ready()
	_, err = io.Copy(io.Discard, os.Stdin)

	return err
}

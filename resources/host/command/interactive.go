package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Interactive runs a program of the user that talks to people, such as an editor, and waits for
// it: it has the input, the output, the terminal and the whole environment of this process, and
// gets the signals of the terminal as this process does. It returns the exit code; the error
// wraps ErrNotFound.
func Interactive(argv []string) (exitCodeOf int, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &ended):
		return exitCode(cmd.ProcessState), nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return 0, fmt.Errorf("%s: %w", argv[0], ErrNotFound)
	default:
		return 0, err
	}
}

package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Interactive runs an interactive program of the user, such as an editor, and waits for it. The program
// shares the input, output, terminal and environment of this process, and receives the signals of the
// terminal. Interactive returns the exit code. The error wraps ErrNotFound.
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

package cli

import (
	"errors"
	"fmt"

	"github.com/musterfleet/muster/kvstore/provision"
)

// PrintDifferences prints what provisioning changes.
func (e *Env) PrintDifferences(planned []provision.Difference) {
	if len(planned) == 0 {
		e.Print.Printf("everything is up to date\n")
	}
	for _, d := range planned {
		if d.Create {
			e.Print.Printf("create %s\n", d.Stream)
		}
		for _, change := range d.Changes {
			e.Print.Printf("change %s: %s\n", d.Stream, change)
		}
	}
}

// RoomHint adds the remedy to an error of a server without room. What was created
// before it stays, so the same command continues from there.
func RoomHint(err error) error {
	if !errors.Is(err, provision.ErrNoRoom) {
		return err
	}

	return fmt.Errorf("%w (run it again with a smaller --report-size or --bundle-size, or raise the limits of the account: max_file and max_streams of its jetstream block, max_file_store of the server's; muster needs seven streams)", err)
}

package fleetcmd

import (
	"os"
	"os/user"

	"github.com/musterfleet/muster/cmd/muster/print"
)

// maxOperator is how many characters of the operator are written.
const maxOperator = 64

// Operator names who runs the command, for people: nobody verifies it.
func Operator() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && name != "" {
		name += "@" + host
	}

	return print.Cut(print.Text(name), maxOperator)
}

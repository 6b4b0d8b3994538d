package fleetcmd

import (
	"os"
	"os/user"

	"github.com/musterfleet/muster/cmd/muster/print"
)

// maxOperator is the maximum length of the operator's name, in characters.
const maxOperator = 64

// Operator returns USER@HOST of the current user. The name is informational and not verified.
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

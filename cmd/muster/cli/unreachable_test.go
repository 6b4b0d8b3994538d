package cli_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore/connect"
)

// TestRemedies checks that remedies name the settings of the caller.
func TestRemedies(t *testing.T) {
	t.Parallel()
	silent := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	untrusted := fmt.Errorf("%w: %w", nats.ErrTLS, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})
	for want, c := range map[string]struct {
		options connect.Options
		err     error
	}{
		"check user a, and its password in f (-password-file)":                                      {connect.Options{User: "a", PasswordFile: "f"}, nats.ErrAuthorization},
		"check user a and its password":                                                             {connect.Options{User: "a", Password: "p"}, nats.ErrAuthorization},
		"check that the server knows the user of c (-creds), and that it has not expired":           {connect.Options{Creds: "c"}, nats.ErrAuthorization},
		"check that the server has a user with the public key of k (-nkey)":                         {connect.Options{NKey: "k"}, nats.ErrAuthorization},
		"check the credentials of context x (-context)":                                             {connect.Options{Context: "x"}, nats.ErrAuthorization},
		"give other credentials with -user, -creds or -nkey":                                        {connect.Options{}, nats.ErrAuthorization},
		"give the authority that signed it with -tlsca, or correct the host":                        {connect.Options{}, untrusted},
		"write tls://, and give its authority with -tlsca":                                          {connect.Options{}, nats.ErrSecureConnRequired},
		"is nats-server running there, and is this its client port?":                                {connect.Options{}, silent},
		"is nats-server running there?":                                                             {connect.Options{Servers: []string{"s"}}, nats.ErrNoServers},
		"give a server with -server or a NATS context with -context":                                {connect.Options{}, nats.ErrNoServers},
		"the server may want the certificate of a client that it trusts: give -tlscert and -tlskey": {connect.Options{}, nats.ErrTLS},
		"set max_control_line: 64KB in the configuration of each nats-server and reload it: the JWT of the user is too long for the default of 4 KB": {
			connect.Options{Creds: "c"}, fmt.Errorf("%w: %w", connect.ErrEnded, connect.ErrControlLine),
		},
		"": {connect.Options{}, errors.New("other")},
	} {
		reach := cli.Reach{Options: c.options, Name: func(option string) string { return "-" + option }}
		if got := reach.Remedy(c.err); got != want {
			t.Errorf("%v: %q, want %q", c.err, got, want)
		}
	}
}

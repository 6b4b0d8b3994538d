package fleetcmd

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model/signed"
)

// signature is who signed a revision, and until when a node that does not have it accepts it.
type signature struct {
	// Signers are the public keys of valid signatures. Only nodes know which they trust.
	Signers []signed.Key `json:"signers"`
	Target  string       `json:"target"`
	Issued  time.Time    `json:"issued"`
	Expires time.Time    `json:"expires"`
}

// signatureOf returns the signature of a value, nil where it is not signed.
func signatureOf(ctx context.Context, value []byte) *signature {
	e, err := signed.Open(value)
	if err != nil {
		return nil
	}

	return &signature{e.Signers(ctx), e.Statement.Target, e.Statement.Issued, e.Statement.Expires}
}

// String describes it as the end of a line.
func (s *signature) String() string {
	if s == nil {
		return ""
	}
	short := make([]string, len(s.Signers))
	for i, k := range s.Signers {
		short[i] = k.Short()
	}
	if len(short) == 0 {
		return ", with no valid signature"
	}

	return ", signed by " + strings.Join(short, ", ") + " until " + print.Time(s.Expires)
}

// warnUnsigned warns that what was signed is replaced by what is not.
func warnUnsigned(log *slog.Logger) func(key string) {
	return func(key string) {
		log.Warn("what was assigned is signed, and this is not: nodes that demand signatures reject it (give --sign-key FILE)", "key", key)
	}
}

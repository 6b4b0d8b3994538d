package model

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// DigestPrefix begins every digest of bytes: sha256-<hex>.
const DigestPrefix = "sha256-"

// DigestOf names bytes by their SHA-256.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)

	return DigestPrefix + hex.EncodeToString(sum[:])
}

// DigestFrom returns the digest of the bytes written to h, a SHA-256 hash.
func DigestFrom(h hash.Hash) string { return DigestPrefix + hex.EncodeToString(h.Sum(nil)) }

// Package registrations is the stream of registrations: what nodes tell of
// services.
package registrations

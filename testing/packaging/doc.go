// Package packaging tests what the deb and the rpm do beyond having files:
// deploy/package/upgrade. The rigs have them on a real machine.
package packaging

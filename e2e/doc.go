// Package e2e has only tests: they run the program as its users do, with real
// processes, sockets and files on the loopback interface, alone and against
// ndnd's.
package e2e

// Package providertest is the contract of provider.Provider as tests: every
// driver passes the same suite. A driver's test says how to reach its hardware
// and what to boot; the suite does the rest.
package providertest

package terminal_test

const roleVariable = "DAYCARED_TERMINAL_ROLE"

func play(role string) int { return 1 }

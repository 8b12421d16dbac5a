// Reads a compose file as `docker compose` does, and prints it in full as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

// Of compose-go, as go.mod has it.
const version = "2.10.0"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("compose-check version", version)
		return
	}
	options, err := cli.NewProjectOptions(os.Args[1:], cli.WithInterpolation(true))
	if err == nil {
		project, loadErr := options.LoadProject(context.Background())
		if err = loadErr; err == nil {
			err = json.NewEncoder(os.Stdout).Encode(project)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

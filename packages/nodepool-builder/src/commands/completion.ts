import { Argument, type Command } from 'commander';
import { bashScript } from './completion/bash.ts';
import { completedCommands } from './completion/commands.ts';
import { fishScript } from './completion/fish.ts';
import { zshScript } from './completion/zsh.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** `completion SHELL`: prints a script that completes command lines. */
export function registerCompletion(program: Command): void {
  program
    .command('completion')
    .description(
      'Prints a script with which a shell completes commands, options, values and files, and the names of disk images ' +
        'and providers in the configuration file of -c.',
    )
    .addArgument(new Argument('<shell>', 'shell that reads the script').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', INSTALLATION)
    .action((shell: keyof typeof SCRIPTS) => {
      console.log(SCRIPTS[shell](completedCommands(program)));
    });
}

const INSTALLATION = `
To install it, as root:
  $ nodepool-builder completion bash > /etc/bash_completion.d/nodepool-builder
  $ nodepool-builder completion zsh \\
      > /usr/local/share/zsh/site-functions/_nodepool-builder
  $ nodepool-builder completion fish \\
      > /etc/fish/completions/nodepool-builder.fish

Without Debian's package bash-completion, ~/.bashrc reads the script:
  source /etc/bash_completion.d/nodepool-builder`;

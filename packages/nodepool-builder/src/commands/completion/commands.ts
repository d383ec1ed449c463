import type { Argument, Command, Option } from 'commander';

/** What a shell offers for a value: the names of the configuration file, files, directories, these words, or nothing. */
export type Candidates = 'diskimages' | 'providers' | 'files' | 'directories' | readonly string[];

/** An option of a command. */
export interface CompletedOption {
  /** `-c` and `--config`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined for an option without a value. */
  readonly value: { readonly candidates: Candidates; readonly isOptional: boolean } | undefined;
}

/** A command; the program itself has an empty name. */
export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** Of each operand; the last one of a variadic command repeats. */
  readonly operands: readonly Candidates[];
  readonly isVariadic: boolean;
}

/** The program and its commands, as a shell completes them. */
export function completedCommands(program: Command): readonly CompletedCommand[] {
  const commands = program.createHelp().visibleCommands(program);
  const names = commands.map((command) => command.name());
  return [program, ...commands].map((command) => ({
    name: command === program ? '' : command.name(),
    description: command.summary(),
    options: command.createHelp().visibleOptions(command).map(completedOption),
    operands:
      command === program
        ? [names]
        : command.registeredArguments.map((operand) => operandCandidates(operand, names)),
    isVariadic: command.registeredArguments.some(({ variadic }) => variadic),
  }));
}

function completedOption({
  short,
  long,
  flags,
  required,
  optional,
  argChoices,
  description,
}: Option): CompletedOption {
  const placeholder = /[<[]([^>\]]*)/.exec(flags)?.[1] ?? '';
  const candidates = argChoices ?? candidatesOf(placeholder);
  return {
    flags: [short, long].filter((flag) => flag !== undefined && flag !== null),
    description,
    value: required || optional ? { candidates, isOptional: optional } : undefined,
  };
}

function operandCandidates(operand: Argument, commands: readonly string[]): Candidates {
  if (operand.name() === 'command') return commands;
  return operand.argChoices ?? candidatesOf(operand.name());
}

/** The placeholder of a value says what it is. */
const CANDIDATES: Readonly<Record<string, Candidates>> = {
  diskimage: 'diskimages',
  provider: 'providers',
  directory: 'directories',
  image: 'files',
  file: 'files',
  path: 'files',
};

function candidatesOf(placeholder: string): Candidates {
  return CANDIDATES[placeholder] ?? [];
}

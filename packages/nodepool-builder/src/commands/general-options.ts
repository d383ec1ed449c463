import type { Command } from 'commander';

/**
 * Makes options that stand before a subcommand count for it, as if they stood behind it. An option that the subcommand
 * does not take is a usage error: ignored, `-c staging.yaml rebuild debian` would act on production.
 */
export function passGeneralOptions(program: Command): void {
  program.hook('preAction', (_program, command) => {
    if (command === program) return;
    for (const option of program.options) {
      const key = option.attributeName();
      if (program.getOptionValueSource(key) !== 'cli') continue;
      if (!command.options.some(({ long }) => long === option.long)) {
        command.error(`error: ${option.flags} is not an option of ${command.name()}; leave it out`);
      }
      const before: unknown = program.getOptionValue(key);
      const behind: unknown = command.getOptionValue(key);
      if (command.getOptionValueSource(key) === 'cli' && behind !== before) {
        command.error(
          `error: ${option.flags} is given twice, as ${String(before)} and as ${String(behind)}; give it once`,
        );
      }
      command.setOptionValueWithSource(key, before, 'cli');
    }
  });
}

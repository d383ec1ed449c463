import { type BuildContext, ImageError } from '@nodepool-builder/image-builder';
import { withTimeout } from '@nodepool-builder/image-builder/module-kit';
import { stepEnvironment } from './environment.ts';
import { stepFailed } from './failure.ts';
import type { BuildRecord } from './instance-records.ts';
import type { Machine } from './machine.ts';
import type { RemoteFile } from './remote-shell.ts';
import { scriptFiles } from './script-files.ts';
import type { MachineScript, ScriptLanguage } from './script-language.ts';
import type { OnInstance } from './settings.ts';

/** Number of a step's last output lines in an error. */
const LAST_LINES = 5;

/** Parameters of {@link runSteps}. */
export interface StepSite {
  readonly machine: Machine;
  readonly language: ScriptLanguage;
  readonly settings: OnInstance;
  readonly context: BuildContext;
  readonly record: BuildRecord;
}

/**
 * Writes the scripts to the machine and runs the remaining steps.
 *
 * @throws ImageError `command-failed`, `instance-failed`, `host-key-changed`, `invalid-configuration`,
 *   `directory-not-usable`
 */
export async function runSteps(site: StepSite): Promise<void> {
  const { language, settings, context, record } = site;
  const { steps, bootTimeout } = settings;
  const files = await scriptFiles(context.diskimage.scriptDir);
  const environment = stepEnvironment(context, language.scriptDirectory);
  await withTimeout(
    bootTimeout,
    context.signal,
    (signal) => runScript(site, 'the preparation', 'prepare', language.prepare, { files, signal }),
    () => {
      throw new ImageError('instance-failed', `the machine did not set itself up within ${bootTimeout} s`);
    },
  );
  for (const [index, { name, run }] of steps.entries()) {
    if (index < record.entry.stepsDone) continue;
    const title = `step ${JSON.stringify(name ?? run)}`;
    await context.buildLog.write(`== ${title}`);
    await runScript(site, title, `step-${index}`, language.step(run, environment));
    await record.update({ stepsDone: index + 1 });
    context.progress(20 + (50 * (index + 1)) / steps.length, 100);
  }
}

/**
 * Runs a script that must exit with 0.
 *
 * @param title for messages
 * @param name of its file on the machine
 */
export async function runScript(
  { machine, context }: Pick<StepSite, 'machine' | 'context'>,
  title: string,
  name: string,
  script: MachineScript,
  options: { readonly files?: readonly RemoteFile[]; readonly signal?: AbortSignal } = {},
): Promise<void> {
  const lastLines: string[] = [];
  const onLine = (line: string): void => {
    if (line.trim() !== '') lastLines.push(line.trimEnd());
    if (lastLines.length > LAST_LINES) lastLines.shift();
  };
  const result = await machine.run(name, script, { ...options, onLine });
  if (result.exitCode !== 0) throw stepFailed(title, result, lastLines, context);
}

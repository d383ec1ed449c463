import {
  Client,
  type FunctionStatus,
  GearmanError,
  type ServerAddress,
} from '@nodepool-builder/gearman-node';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { askServers } from '../daemon/fleet.ts';
import { CommandError, choiceOf } from './command-error.ts';
import { openProgressDisplay } from './progress-display.ts';

/**
 * Submits a job, shows its progress on standard error until it ends, and returns its result.
 *
 * @throws CommandError if no builder offers the function, or the job fails.
 */
export async function followJob(
  configuration: Configuration,
  functionName: string,
  argument: unknown,
): Promise<Buffer> {
  const servers = jobServers(configuration);
  await requireOffer(servers, functionName);
  const display = await openProgressDisplay(functionName, process.stderr);
  const client = new Client({ servers, clientId: 'nodepool-builder command' });
  try {
    const job = client.submit(functionName, JSON.stringify(argument));
    display.update(0);
    for await (const event of job) {
      if (event.type === 'status' && event.denominator > 0) {
        display.update(Math.floor((event.numerator * 100) / event.denominator));
      }
    }
    const result = await job;
    display.update(100);
    return result;
  } catch (error) {
    if (!(error instanceof GearmanError)) throw error;
    throw new CommandError(error.message, { cause: error });
  } finally {
    display.stop();
    await client.close();
  }
}

/** A job for a function that no builder offers would wait in the queue forever, without an error. */
async function requireOffer(servers: readonly ServerAddress[], functionName: string): Promise<void> {
  const offered = new Set(
    (await functionsOf(servers))
      .filter(({ availableWorkers }) => availableWorkers > 0)
      .map(({ name }) => name),
  );
  if (offered.has(functionName)) return;
  const verb = functionName.slice(0, functionName.indexOf(':') + 1);
  const alternatives = [...offered]
    .filter((name) => name.startsWith(verb))
    .map((name) => name.slice(verb.length));
  const remedy =
    alternatives.length > 0
      ? choiceOf(alternatives.toSorted().slice(0, 10))
      : `nothing is offered for ${verb.slice(0, -1)}; start nodepool-builder, or see its log`;
  throw new CommandError(`no builder offers ${functionName}; ${remedy}`);
}

/**
 * Lists the functions of all job servers.
 *
 * @throws CommandError if no server answers.
 */
export async function functionsOf(servers: readonly ServerAddress[]): Promise<FunctionStatus[]> {
  return await askServers(servers, (admin) => admin.status()).catch((error: unknown) => {
    if (!(error instanceof GearmanError)) throw error;
    throw new CommandError(error.message, { cause: error.cause });
  });
}

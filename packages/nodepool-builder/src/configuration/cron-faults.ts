import type { Fault } from './fault.ts';
import { toFault } from './finding.ts';
import type { ConfigurationSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

interface CronPlace {
  readonly pointer: string;
  readonly expression: string;
  readonly severity: Fault['severity'];
  readonly remedy: string;
}

/** Times that are no cron expressions. `cron` was nodepool's, and a builder never read it: that is a warning only. */
export async function cronFaults(
  document: YamlDocument,
  source: ConfigurationSource,
): Promise<readonly Fault[]> {
  const places = [...cronPlaces(source)];
  if (places.length === 0) return [];
  // Not at the top: a configuration without them is read the sooner.
  const { cronError } = await import('@nodepool-builder/image-manager');
  return places.flatMap(({ pointer, expression, severity, remedy }) => {
    const fault = cronError(expression);
    if (fault === undefined) return [];
    const reason = `is no cron expression: ${fault.replace(/\.$/, '')}`;
    return [toFault(document, { pointer, severity, reason, remedy })];
  });
}

function* cronPlaces({ cron, diskimages }: ConfigurationSource): Iterable<CronPlace> {
  for (const [index, { 'rebuild-cron': expression }] of (diskimages ?? []).entries()) {
    const remedy = "write minute, hour, day, month and weekday, as '14 2 * * *', or use rebuild-age";
    const pointer = `/diskimages/${index}/rebuild-cron`;
    if (expression !== undefined) yield { pointer, expression, severity: 'error', remedy };
  }
  const update = cron?.['image-update'];
  if (update !== undefined) {
    const remedy = 'correct it; until then the manager has images built anew once a day';
    yield { pointer: '/cron/image-update', expression: update, severity: 'warning', remedy };
  }
}

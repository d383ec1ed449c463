/**
 * The jobs of which a build succeeded, as a message of Zuul's MQTT reporter tells:
 * https://zuul-ci.org/docs/zuul/latest/drivers/mqtt.html
 *
 * @throws Error with the reason, if it is no such message
 */
export function successfulJobs(payload: Uint8Array): ReadonlySet<string> {
  const message: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  const builds = property(property(message, 'buildset'), 'builds');
  if (!Array.isArray(builds)) throw new Error('buildset.builds is no list');
  const jobs = builds
    .filter((build: unknown) => property(build, 'result') === 'SUCCESS')
    .map((build: unknown) => property(build, 'job_name'));
  return new Set(jobs.filter((job) => typeof job === 'string'));
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

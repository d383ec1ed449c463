/**
 * Jobs with a finished build in a message of Zuul's MQTT reporter, whatever the result: for a job with a
 * `success-message` the reporter sends that text as the result of its successful builds.
 * https://zuul-ci.org/docs/zuul/latest/drivers/mqtt.html
 *
 * @throws Error with the reason, if the payload is not such a message
 */
export function finishedJobs(payload: Uint8Array): ReadonlySet<string> {
  const message: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  const builds = property(property(message, 'buildset'), 'builds');
  if (!Array.isArray(builds)) throw new Error('buildset.builds is not a list');
  const jobs = builds
    .filter((build: unknown) => typeof property(build, 'result') === 'string')
    .map((build: unknown) => property(build, 'job_name'));
  return new Set(jobs.filter((job) => typeof job === 'string'));
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

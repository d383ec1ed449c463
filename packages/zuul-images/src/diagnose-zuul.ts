import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, SILENT_LOGGER } from '@nodepool-builder/image-builder/internal';
import { openZuulApi } from './api/zuul-api.ts';
import type { ZuulBuild } from './api/zuul-build.ts';
import { imageArtifacts } from './builds/image-artifact.ts';
import { subscribeOnce } from './polling/mqtt-listener.ts';
import type { MqttSettings, ZuulSettings } from './zuul-settings.ts';

/**
 * Checks that Zuul's API responds for the tenant, that the job has builds, and that the broker accepts a subscription.
 */
export async function* diagnoseZuul(
  name: string,
  settings: ZuulSettings,
  signal: AbortSignal,
): AsyncGenerator<CheckResult> {
  const { project, job, branch } = settings;
  const subject = `Zuul of image ${name}`;
  const builds = await attempt(subject, signal, async () => {
    const api = await openZuulApi(settings, SILENT_LOGGER, { attempts: 1 });
    for await (const page of api.builds(settings, signal)) return { api: api.name, newest: page[0] };
    return { api: api.name, newest: undefined };
  });
  if (builds.problem) {
    yield builds.problem;
  } else {
    const { api, newest } = builds.value;
    yield { subject, status: 'ok', message: `${api} responds, and knows the tenant` };
    const of = `job ${job} of project ${project}${branch === undefined ? '' : `, branch ${branch}`}`;
    yield newest === undefined
      ? {
          subject: `builds of image ${name}`,
          status: 'warning',
          message: `Zuul lists no successful build of ${of}`,
          remedy: 'correct project, pipelines, job and branch, unless the job has never succeeded',
        }
      : checkBuild(newest, of, name, settings);
  }
  if (settings.mqtt !== undefined) yield await checkBroker(settings.mqtt, signal);
}

/** Checks that the build that started last returned the image. */
function checkBuild(build: ZuulBuild, of: string, name: string, settings: ZuulSettings): CheckResult {
  const subject = `builds of image ${name}`;
  const { uuid, endTime } = build;
  const ended = endTime === undefined ? '' : `, which ended at ${new Date(endTime).toISOString()}`;
  const newest = `the newest build of ${of} is ${uuid}${ended}`;
  try {
    imageArtifacts(build, { ...settings, name });
    return { subject, status: 'ok', message: newest };
  } catch (error) {
    const remedy = 'correct the artifacts that the job returns, or the settings artifacts and image-name';
    return { subject, status: 'warning', message: `${newest}: ${(error as Error).message}`, remedy };
  }
}

async function checkBroker(settings: MqttSettings, signal: AbortSignal): Promise<CheckResult> {
  const subject = `MQTT broker ${new URL(settings.url).host}`; // excludes the user name
  const remedy = 'correct the section mqtt; until then builds are found only by polling';
  const { problem } = await attempt(subject, signal, () => subscribeOnce(settings, signal), remedy);
  if (problem !== undefined) return { ...problem, status: 'warning' };
  return { subject, status: 'ok', message: `this builder may subscribe to ${settings.topic}` };
}

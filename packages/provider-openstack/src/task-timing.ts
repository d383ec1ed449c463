/** Called with the name of each request to a cloud that succeeded, and the milliseconds that it took. */
export type OnTask = (task: CloudTask, milliseconds: number) => void;

/** The requests, by the names that shade gave them: they are part of statsd keys that dashboards know. */
export const CLOUD_TASKS = [
  'GlanceImageList',
  'ImageGet',
  'ImageCreate',
  'ImageUpload',
  'ImageStage',
  'ImageImport',
  'ImageImportInfo',
  'ImageUpdate',
  'ImageDelete',
  'ImageTaskCreate',
  'ImageTaskGet',
  'ContainerCreate',
  'ContainerGet',
  'ObjectCreate',
  'ObjectDelete',
] as const;

/** One of {@link CLOUD_TASKS}. */
export type CloudTask = (typeof CLOUD_TASKS)[number];

/** Does the work, and tells how long it took. */
export async function timed<T>(
  onTask: OnTask | undefined,
  task: CloudTask,
  work: () => Promise<T>,
): Promise<T> {
  const begun = performance.now();
  const result = await work();
  onTask?.(task, performance.now() - begun);
  return result;
}

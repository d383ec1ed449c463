import type { ManagerState, StateStore } from '@nodepool-builder/image-manager';

type Uploads = Iterable<ReturnType<ManagerState['uploads']['get']>>;

/**
 * Reports recorded uploads as ready: each when it is written, and all of them when a manager becomes the leader. The
 * previous leader may have been killed between writing a record and reporting it.
 *
 * @param report - receives the external ids
 */
export function reportReady(
  store: StateStore,
  report: (externalIds: readonly string[]) => Promise<void>,
): void {
  const reportUploads = async (uploads: Uploads): Promise<void> => {
    const ids = [...uploads].flatMap((upload) =>
      upload?.state === 'ready' && upload.externalId !== undefined ? [upload.externalId] : [],
    );
    if (ids.length > 0) await report(ids);
  };
  const lead = store.lead.bind(store);
  store.lead = async (options) => {
    const leadership = await lead(options);
    const write = leadership.write.bind(leadership);
    leadership.write = async (change) => {
      await write(change);
      await reportUploads(change.uploads ?? []);
    };
    await reportUploads((await store.read()).uploads.values());
    return leadership;
  };
}

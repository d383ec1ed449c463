/** Called with the name of each successful request and its duration in milliseconds. */
export type OnTask = (task: CloudTask, milliseconds: number) => void;

/** Request names from shade, which are part of statsd keys in existing dashboards. */
export type CloudTask =
  | 'GlanceImageList'
  | 'ImageGet'
  | 'ImageCreate'
  | 'ImageUpload'
  | 'ImageStage'
  | 'ImageImport'
  | 'ImageImportInfo'
  | 'ImageUpdate'
  | 'ImageDelete'
  | 'ImageTaskCreate'
  | 'ImageTaskGet'
  | 'ContainerCreate'
  | 'ContainerGet'
  | 'ObjectCreate'
  | 'ObjectDelete';

-- The instances that a cell of Nova has booted and deleted, for "hpcvirt
-- simulate --workload". It only reads. The shadow tables have what
-- "nova-manage db archive_deleted_rows" has archived.
SELECT i.uuid, i.created_at, i.deleted_at, i.reservation_id, e.flavor
  FROM instances i
  JOIN instance_extra e ON e.instance_uuid = i.uuid
 WHERE i.launched_at IS NOT NULL
 UNION ALL
SELECT i.uuid, i.created_at, i.deleted_at, i.reservation_id, e.flavor
  FROM shadow_instances i
  JOIN shadow_instance_extra e ON e.instance_uuid = i.uuid
 WHERE i.launched_at IS NOT NULL;
